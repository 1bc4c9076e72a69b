# SPDX-License-Identifier: Apache-2.0
"""Control groups with a hard limit of memory, version 1 or 2, and programs that run in them."""
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import time

import peers

UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
MIB = 2**20


def bytes_of(size):
    number, unit = re.fullmatch(r"([0-9.]+)(KiB|MiB|GiB)", size).groups()
    return int(float(number) * UNITS[unit])


def mib(size):
    """Bytes as text."""
    return f"{size / MIB:,.1f} MiB"


def drop(path):
    """Takes a file, or the files of a folder, out of the page cache, where it would belong to no group."""
    path = pathlib.Path(path)
    for each in path.iterdir() if path.is_dir() else [path]:
        with open(each, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def end(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it has ended


class Cage:
    """A cgroup with a hard limit. limit: bytes, or None for a group that only counts. name: of one of several."""

    def __init__(self, limit, name=""):
        v1 = pathlib.Path("/sys/fs/cgroup/memory")
        self.v1 = v1.is_dir()
        self.path = (v1 if self.v1 else pathlib.Path("/sys/fs/cgroup")) / f"mica-bench-{os.getpid()}{name}"
        self.path.mkdir(exist_ok=True)
        if limit is None:
            return
        self.write("memory.limit_in_bytes" if self.v1 else "memory.max", limit)
        try:
            self.write("memory.memsw.limit_in_bytes" if self.v1 else "memory.swap.max",
                       limit if self.v1 else 0)
        except OSError:
            pass  # no accounting of swap: there is none

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for pid in self.read("cgroup.procs").split():  # after an error or an interrupt
            end(int(pid))
        self.remove()

    def write(self, name, value):
        (self.path / name).write_text(str(value))

    def read(self, name):
        return (self.path / name).read_text()

    def run(self, command):
        return subprocess.run(command, capture_output=True, text=True, preexec_fn=lambda:
                              (self.path / "cgroup.procs").write_text(str(os.getpid())))

    def facts(self):
        if self.v1:
            kills = re.search(r"oom_kill (\d+)", self.read("memory.oom_control"))
            return {
                "peak_bytes": int(self.read("memory.max_usage_in_bytes")),
                "times_at_limit": int(self.read("memory.failcnt")),
                "oom_kills": int(kills.group(1)) if kills else 0
            }
        events = dict(line.split() for line in self.read("memory.events").splitlines())
        return {
            "peak_bytes": int(self.read("memory.peak")), "times_at_limit": int(events["max"]),
            "oom_kills": int(events["oom_kill"])
        }

    def use(self):
        """Bytes in use now: all, and without page cache that can be dropped."""
        bytes_ = int(self.read("memory.usage_in_bytes" if self.v1 else "memory.current"))
        stat = dict(line.split() for line in self.read("memory.stat").splitlines())
        before = "total_" if self.v1 else ""
        cache = int(stat[before + "active_file"]) + int(stat[before + "inactive_file"])
        return bytes_, max(bytes_ - cache, 0)

    def remove(self):
        for _ in range(50):
            try:
                return self.path.rmdir()
            except OSError:
                time.sleep(0.1)


# Starts a command in a group and waits for it. It is a small program of its own, since the maximum of
# resident bytes that wait4() reports begins with that of the process that calls exec. FACTS gets a line with
# the number of the process, and at its end one with its status and that maximum in KiB.
STARTER = r"""
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char** words) {  // starter FACTS PROCS COMMAND...
  if (count < 4) return 125;
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // no run stays behind when the script is ended
  const pid_t child = fork();
  if (child < 0) return 125;
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int group = open(words[2], O_WRONLY | O_CLOEXEC);
    if (group < 0 || write(group, "0", 1) != 1) _exit(126);
    execvp(words[3], words + 3);
    _exit(127);
  }
  FILE* facts = fopen(words[1], "w");
  if (!facts) return 125;
  fprintf(facts, "%d\n", (int)child);
  fflush(facts);
  int status = 0;
  struct rusage used;
  if (wait4(child, &status, 0, &used) != child) return 125;
  fprintf(facts, "%d %ld\n", status, used.ru_maxrss);
  return fclose(facts) == 0 ? 0 : 125;
}
"""


def compiled(source, program):
    """Compiles C, and returns the path of the program as text."""
    words = ["cc", "-O2", "-Wall", "-x", "c", "-", "-o", str(program)]
    done = subprocess.run(words, input=source, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{shlex.join(words)}\n{done.stderr}")
    return str(program)


class Started:
    """A command that runs in a cage; its streams are files below folder, whose names begin with name.
    starter: the program of STARTER."""

    def __init__(self, starter, cage, command, folder, name, text=""):
        self.paths = {part: pathlib.Path(folder) / f"{name}.{part}" for part in ("in", "out", "err", "facts")}
        self.paths["in"].write_text(text)
        self.paths["facts"].write_text("")
        self.begin = time.monotonic()
        with open(self.paths["in"]) as in_, open(self.paths["out"],
                                                 "wb") as out, open(self.paths["err"], "wb") as err:
            self.starter = subprocess.Popen(
                [starter, str(self.paths["facts"]),
                 str(cage.path / "cgroup.procs"), *command], stdin=in_, stdout=out, stderr=err)
        self.seconds = self.exit = self.rss_bytes = None

    def pid(self):
        """Of the command; None before it is known."""
        lines = self.paths["facts"].read_text().splitlines(keepends=True)
        return int(lines[0]) if lines and lines[0].endswith("\n") else None

    def running(self):
        """False as soon as it has ended; then exit (negative: a signal), rss_bytes and seconds are set."""
        if self.exit is not None:
            return False
        if self.starter.poll() is None:
            return True
        self.seconds = time.monotonic() - self.begin
        lines = self.paths["facts"].read_text().splitlines()
        if self.starter.returncode != 0 or len(lines) != 2:
            raise RuntimeError(f"the starter ended with {self.starter.returncode}: {lines}")
        status, kib = map(int, lines[1].split())
        self.exit, self.rss_bytes = os.waitstatus_to_exitcode(status), kib * 1024
        if self.exit in (126, 127):
            raise RuntimeError(f"the command was not started: {self.starter.args}")
        return False

    def wait(self, seconds):
        """Waits for the end; False where it had to be stopped after that time."""
        try:
            self.starter.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.stop()
            return False
        return not self.running()

    def stop(self):
        """Ends the command, if it still runs."""
        while self.running() and (pid := self.pid()) is None:
            time.sleep(0.01)
        if self.running():
            end(pid)
        self.starter.wait()
        self.running()

    def out(self):
        return self.paths["out"].read_bytes()

    def err(self):
        return self.paths["err"].read_text(errors="replace")


def flags_of(values):
    """Words of a command line."""
    return [word for name, value in values.items() for word in (f"--{name}", str(value))]


def table_row(cells):
    return f"| {' | '.join(map(str, cells))} |"


def table_head(columns):
    return table_row(columns) + "\n" + "|---" * len(columns) + "|"


def add_run_options(parser, runs):
    """Options of a script of numbered runs."""
    parser.add_argument("--runs", type=int, default=runs)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first run")
    parser.add_argument("--only", type=int)
    parser.add_argument("--mica", default=str(peers.ROOT / "build/release/mica"))
    parser.add_argument("--folder", help="where the files of runs are; a temporary folder by default")
    parser.add_argument("--json", type=pathlib.Path)


def numbered_runs(options, columns, do_run, row):
    """Does each run, or that of --only, and prints it as a row of a table. Returns the results, and the runs that
    could not be done. Ends early with Ctrl-C."""
    results, not_counted = [], []
    print(table_head(columns), flush=True)
    numbers = range(options.first, options.first + options.runs)
    for number in numbers if options.only is None else [options.only]:
        try:
            results.append(do_run(number))
            print(table_row(row(results[-1])), flush=True)
        except KeyboardInterrupt:
            print("ended early", file=sys.stderr)
            break
        except (RuntimeError, OSError, ValueError, KeyError) as error:
            not_counted.append({"run": number, "reason": f"{type(error).__name__}: {error}"})
            print(f"run {number} is not counted: {not_counted[-1]['reason']}", file=sys.stderr, flush=True)
    return results, not_counted


def options_after_dashes(parser, arguments):
    """Options of a script, with the words after -- as options.mica_options."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that groups are removed
    options = parser.parse_args(arguments[:at])
    options.mica_options = arguments[at + 1:]
    return options
