// SPDX-License-Identifier: Apache-2.0
//
// The code for URLs is in a module, which is loaded when a URL is named: from the program's folder in a build
// folder, from lib/mica in an installation. On systems other than Linux it is part of the program.
#include "remote.hpp"

#include "mica/base/assert.hpp"
#include "mica_tools/remote/url.hpp"

#include <filesystem>
#include <optional>
#include <utility>

#if defined(MICA_URL_MODULE) || defined(MICA_HAS_SERVER)
#include "urls/module.hpp"
#endif
#ifdef MICA_URL_MODULE
#include <dlfcn.h>
#endif

namespace mica::program {
#ifdef MICA_URL_MODULE
namespace {

using OpenRemote = decltype(mica_open_remote);

/// The function of the module. It is never unloaded, since documents use its code. Raises if there is none.
OpenRemote* open_of_module(const std::string& url) {
  std::error_code error;
  const auto folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* place : {MICA_URL_MODULE, MICA_URL_MODULE_INSTALLED}) {
    void* const module = ::dlopen((folder / place).c_str(), RTLD_NOW);
    void* const open = module ? ::dlsym(module, "mica_open_remote") : nullptr;
    if (open) return reinterpret_cast<OpenRemote*>(open);
  }
  raise(ErrorCode::failed, remote::shown(url),
        ": the module for URLs cannot be loaded: ", escaped(::dlerror(), 300),
        "; install it with the program, or download the file first");
}

}  // namespace
#endif

gguf::Document open_remote(const std::string& url) {
#if defined(MICA_URL_MODULE) || defined(MICA_HAS_SERVER)
  std::optional<gguf::Document> document;
#ifdef MICA_URL_MODULE
  open_of_module(url)(url, document);
#else
  mica_open_remote(url, document);
#endif
  return *std::move(document);
#else
  raise(ErrorCode::unsupported, remote::shown(url),
        ": this program was built without cpp-httplib, which URLs need; install libcpp-httplib-dev and build "
        "it again, or download the file first");
#endif
}

void refuse_url(const Verb& verb) {
  MICA_CHECK(
      !remote::is_url(verb.model_path) || verb.needs == Verb::Needs::header, unsupported,
      remote::shown(verb.model_path), ": mica ", verb.about.name,
      " needs the whole file; download it first (mica plan and mica inspect read its header where it is)");
}

}  // namespace mica::program
