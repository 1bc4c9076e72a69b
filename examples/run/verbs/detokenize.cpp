// SPDX-License-Identifier: Apache-2.0
//
// Ids to text.
#include "mica/base/assert.hpp"
#include "pieces.hpp"
#include "verbs.hpp"

#include <string>
#include <unistd.h>

namespace mica::program {
namespace {

class Detokenize final : public Verb, public IdsOptions {
 public:
  Detokenize() : Verb({"detokenize", "ids to text", "mica detokenize model.gguf 1 9906"}, Needs::header) {}
  int run() override;

 private:
  void declare(Flags& flags) override {
    add_model(flags);
    IdsOptions::add_to(flags);
    flags.words(words, "IDS", "token ids");
    flags.group("Text");
    flags.toggle("--special", show_special_, "show control tokens");
  }

  bool show_special_ = false;
};

int Detokenize::run() {
  MICA_CHECK(!ids.empty() || !ids_file.empty() || !words.empty(), usage,
             "detokenize: no ids; give them as words, with --ids 1,2,3 or with --ids-file FILE");
  const std::vector<TokenId> given = parsed();
  const text::AnyTokenizer tokenizer = open_tokenizer(*this);
  const std::string text = tokenizer.decode(given, {.show_special = show_special_});
  if (json) {
    print(join("{\"text\":", piece_json(text), "}\n"));
  } else {
    print_data(*this, text);
    if (::isatty(STDOUT_FILENO) == 1 && !text.ends_with('\n')) print("\n");
  }
  return 0;
}

}  // namespace

AnyVerb make_detokenize() { return std::make_unique<Detokenize>(); }

}  // namespace mica::program
