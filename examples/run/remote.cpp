// SPDX-License-Identifier: Apache-2.0
//
// The code for URLs is in a module, which is loaded when a URL or a model of a hub is named: from the program's
// folder in a build folder, from lib/mica in an installation. On systems other than Linux it is part of the
// program.
#include "remote.hpp"

#include "console.hpp"
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
namespace {

#if defined(MICA_URL_MODULE)

/// A function of the module, which is never unloaded, since documents use its code. `what` stands for the
/// request in errors. Raises if there is no module.
template <class Function>
Function* module_function(Function*, const char* name, const std::string& what) {
  std::error_code error;
  const auto folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* place : {MICA_URL_MODULE, MICA_URL_MODULE_INSTALLED}) {
    void* const module = ::dlopen((folder / place).c_str(), RTLD_NOW);
    void* const function = module ? ::dlsym(module, name) : nullptr;
    if (function) return reinterpret_cast<Function*>(function);
  }
  raise(ErrorCode::failed, what, ": the module for URLs cannot be loaded: ", escaped(::dlerror(), 300),
        "; if it is missing, install it with the program, or download the file first");
}
#define MICA_CALL(function, what) module_function(static_cast<decltype(&function)>(nullptr), #function, what)

#elif defined(MICA_HAS_SERVER)
#define MICA_CALL(function, what) (static_cast<void>(what), function)
#endif

#ifdef MICA_CALL
/// Requests that an interrupt ends fail; the program then ends as after any interrupt.
template <class Requests>
void until_interrupted(const Requests& requests) {
  try {
    requests();
  } catch (const Error&) {
    if (interrupted()) throw Stop{130, {}};
    throw;
  }
}
#endif

#if !defined(MICA_URL_MODULE) && !defined(MICA_HAS_SERVER)
[[noreturn]] void refuse_network(const std::string& what) {
  raise(ErrorCode::unsupported, what,
        ": this program was built without cpp-httplib, which URLs and models by name need; install "
        "libcpp-httplib-dev and build it again, or download the file first");
}
#endif

}  // namespace

gguf::Document open_remote(const std::string& url) {
#ifdef MICA_CALL
  std::optional<gguf::Document> document;
  const auto open = MICA_CALL(mica_open_remote, remote::shown(url));
  until_interrupted([&] { open(url, &interrupted(), document); });
  return *std::move(document);
#else
  refuse_network(remote::shown(url));
#endif
}

hub::Listing list_repository(const hub::Name& name) {
#ifdef MICA_CALL
  hub::Listing listing;
  const auto list = MICA_CALL(mica_list_repository, name.text());
  until_interrupted([&] { list(name, &interrupted(), listing); });
  return listing;
#else
  refuse_network(name.text());
#endif
}

bool fetch_files(const hub::Fetch& request, const hub::Watch& watch) {
#ifdef MICA_CALL
  bool done = false;
  MICA_CALL(mica_fetch, request.name.text())(request, watch, done);
  return done;
#else
  static_cast<void>(watch);
  refuse_network(request.name.text());
#endif
}

void serve_http(const serve::ListenOptions& options, const serve::HttpHandler& handle,
                const serve::OnListening& on_listening) {
#ifdef MICA_CALL
  MICA_CALL(mica_listen, std::string("serve"))(options, handle, on_listening);
#else
  static_cast<void>(handle), static_cast<void>(on_listening);
  refuse_network(options.host);
#endif
}

void refuse_url(const Verb& verb) {
  MICA_CHECK(
      !remote::is_url(verb.model_path) || verb.needs == Verb::Needs::header ||
          verb.needs == Verb::Needs::name,
      unsupported, remote::shown(verb.model_path), ": mica ", verb.about.name,
      " needs the whole file; download it first (mica plan and mica inspect read its header where it is, and "
      "mica pull downloads models of a hub by name)");
}

}  // namespace mica::program
