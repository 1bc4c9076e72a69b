// SPDX-License-Identifier: Apache-2.0
#include "child.hpp"

#include "console.hpp"
#include "mica/base/assert.hpp"

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

namespace mica::program {

std::string in_child(const std::function<std::string()>& work) {
  int ends[2];
  if (::pipe(ends) != 0) return work();
  const ::pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
#ifdef __linux__
    ::prctl(PR_SET_PDEATHSIG, SIGINT);  // no download without the program that wants the model
#endif
    const std::string path = work();
    const int written = ::dprintf(ends[1], "%s", path.c_str());
    ::_exit(written == static_cast<int>(path.size()) ? 0 : 1);
  }
  ::close(ends[1]);
  std::string path;
  char piece[4096];
  for (::ssize_t n = child < 0 ? 0 : 1; n != 0;) {
    n = ::read(ends[0], piece, sizeof(piece));
    if (n < 0 && errno != EINTR) break;
    if (n < 0 && interrupted()) ::kill(child, SIGINT);
    path.append(piece, n > 0 ? static_cast<std::size_t>(n) : 0);
  }
  ::close(ends[0]);
  if (child < 0) return work();
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return path;
  MICA_CHECK(WIFEXITED(status), failed, "the download was ended by signal ", WTERMSIG(status),
             "; the downloaded part is kept; the same command continues");
  ::_exit(code_after_signals(WEXITSTATUS(status)));
}

}  // namespace mica::program
