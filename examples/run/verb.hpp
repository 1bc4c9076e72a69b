// SPDX-License-Identifier: Apache-2.0
//
// A verb of the program: its help, its flags, and its work. Each is a class in verbs/<name>.cpp, whose
// members are the values of its flags; flags that several verbs share are a group:
//
//   OutputOptions   every verb             RunningOptions   verbs that run or plan a model
//   PromptOptions   those that read text   AnswerOptions    run, chat and complete
#pragma once

#include "flags.hpp"
#include "output_options.hpp"
#include "report.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mica::program {

class Verb : public OutputOptions {
 public:
  struct About {
    std::string_view name;
    std::string_view summary;  // one line of help
    std::string_view example;
  };

  /// The part of a model that it needs. A header may be on a server. Files and headers may be named by a
  /// model of a hub (model_name.hpp).
  enum class Needs : std::uint8_t {
    file,
    header,
    local,  ///< a file or a folder of this machine
    name,   ///< the name alone
  };

  explicit Verb(const About& its, Needs wanted = Needs::file) : about(its), needs(wanted) {}
  Verb(const Verb&) = delete;  // flags refer to its members
  Verb& operator=(const Verb&) = delete;
  virtual ~Verb() = default;

  /// All its flags. Their values go to members of the verb, which outlives them.
  [[nodiscard]] Flags flags();
  /// Called before run(), and not where --print-config ends the program.
  virtual void prepare() {}
  /// Runs the verb. Returns the exit code, or raises mica::Error.
  virtual int run() = 0;
  /// Whether it runs on several processes that mpirun started; the others raise where there are any.
  [[nodiscard]] virtual bool runs_on_ranks() const noexcept { return false; }
  /// The form of its errors.
  [[nodiscard]] virtual ErrorForm error_form() const {
    return jsonl ? ErrorForm::jsonl : json ? ErrorForm::json : ErrorForm::text;
  }

  const About about;
  const Needs needs;
  std::string model_path;  // empty: the bundled one, where a verb allows that
  std::string hf_repo;     // a model of a hub in place of a path: ORG/REPO:QUANT
  std::string hf_file;     // a file of that repository
  bool offline = false;    // no hub is asked

  // For the parser alone
  bool help = false;
  bool print_config = false;
  std::string config;

 protected:
  /// Declares the flags that not every verb has.
  virtual void declare(Flags& flags) = 0;
  /// Declares the model: the first word, -m, or -hf.
  void add_model(Flags& flags);
  /// Raises ErrorCode::usage where `output`, a file that the verb will write, is one that it reads, also
  /// behind a link: its model, a file of a folder that is its model, or one of `inputs`. Empty names are no
  /// files.
  void refuse_own_input(const std::string& output, std::vector<std::string> inputs = {}) const;
};

}  // namespace mica::program
