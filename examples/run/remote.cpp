// SPDX-License-Identifier: Apache-2.0
//
// What URLs need is in a module, which is loaded when one is named: from the program's folder where it was built, from lib/mica where it is
// installed.
#include "remote.hpp"

#include "mica/base/assert.hpp"
#include "mica/remote/url.hpp"
#include "options.hpp"

#include <filesystem>
#include <optional>
#include <utility>

#ifdef MICA_URL_MODULE
#include "urls/module.hpp"

#include <dlfcn.h>
#endif

namespace mica::program {
#ifdef MICA_URL_MODULE
namespace {

/// The module, for good: documents read by it. Raises where there is none.
void* load_module(const std::string& url) {
  std::error_code error;
  const auto folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* place : {MICA_URL_MODULE, MICA_URL_MODULE_INSTALLED}) {
    if (void* const module = ::dlopen((folder / place).c_str(), RTLD_NOW)) return module;
  }
  raise(ErrorCode::failed, remote::shown(url),
        ": the module for URLs cannot be loaded: ", escaped(::dlerror(), 300),
        "; install it with the program, or download the file first");
}

}  // namespace
#endif

gguf::Document open_remote(const std::string& url) {
#ifdef MICA_URL_MODULE
  void* const open = ::dlsym(load_module(url), "mica_open_remote");
  MICA_CHECK(open, failed, remote::shown(url),
             ": the module for URLs is of another version; install the program anew");
  std::optional<gguf::Document> document;
  reinterpret_cast<decltype(&mica_open_remote)>(open)(url, document);
  return *std::move(document);
#else
  raise(ErrorCode::unsupported, remote::shown(url),
        ": this program was built without cpp-httplib, which URLs need; install libcpp-httplib-dev and build "
        "it again, or download the file first");
#endif
}

void require_files(const Options& options, bool header_is_enough) {
  const bool named = remote::is_url(options.model);
  MICA_CHECK(
      !named || header_is_enough, unsupported, remote::shown(options.model), ": mica ", options.verb,
      " needs the whole file; download it first (mica plan and mica inspect read its header where it is)");
  MICA_CHECK(!named || !options.probe, usage, remote::shown(options.model),
             ": --probe measures the disk that a file lies on; download the file first");
  MICA_CHECK(!remote::is_url(options.draft), unsupported, remote::shown(options.draft),
             ": --draft needs the whole file; download it first");
}

}  // namespace mica::program
