// SPDX-License-Identifier: Apache-2.0
//
// A switch between network namespaces, whose links have a rate and a latency: for machines.py, on kernels
// without netem. Each namespace gets a device eth0; what it sends is delivered when a wire would deliver it.
//
//   wire BITS_PER_SECOND LATENCY_US NAMESPACE...       0 bits: no limit. Prints "ready"; ends by a signal.
//
// Needs root. Frames are those of the kernel, before it cuts them into packets of 1,500 bytes; the wire has
// the bytes that these would have.

#include <linux/if_tun.h>
#include <net/if.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <queue>
#include <string>
#include <utility>
#include <vector>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

using Clock = std::chrono::steady_clock;
using Address = std::array<unsigned char, 6>;

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}
int check(int result, const char* what) {
  if (result < 0) fail(what);
  return result;
}

constexpr std::size_t header = 10;             // of a frame, as the kernel describes what is not cut yet
constexpr std::size_t largest = 65536 + 1024;  // bytes of one

/// The link of a namespace.
struct Port {
  int device = -1;
  Clock::time_point up_free, down_free;  // when the last frame has left it
};

struct Frame {
  Clock::time_point arrives;
  std::uint64_t turn;  // of equal times the first one goes first
  std::size_t to;
  std::vector<char> bytes;
  friend bool operator<(const Frame& a, const Frame& b) {
    return std::pair(a.arrives, a.turn) > std::pair(b.arrives, b.turn);
  }
};

int open_device(const std::string& name) {
  const int space = check(open(("/run/netns/" + name).c_str(), O_RDONLY), name.c_str());
  check(setns(space, CLONE_NEWNET), "setns");
  const int device = check(open("/dev/net/tun", O_RDWR | O_NONBLOCK), "/dev/net/tun");
  ifreq request{};
  std::strncpy(request.ifr_name, "eth0", IFNAMSIZ - 1);
  request.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR;
  check(ioctl(device, TUNSETIFF, &request), "TUNSETIFF");
  check(ioctl(device, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4), "TUNSETOFFLOAD");
  close(space);
  return device;
}

class Switch {
 public:
  Switch(double bits, std::chrono::nanoseconds latency, const std::vector<std::string>& names)
      : bits_(bits), latency_(latency), buffer_(largest) {
    const int home = check(open("/proc/self/ns/net", O_RDONLY), "namespace");
    for (const std::string& name : names) ports_.push_back({open_device(name), {}, {}});
    check(setns(home, CLONE_NEWNET), "setns");
    close(home);
  }

  [[noreturn]] void run() {
    std::vector<pollfd> polled;
    for (const Port& port : ports_) polled.push_back({port.device, POLLIN, 0});
    for (;;) {
      timespec wait{1, 0};
      if (!frames_.empty()) {
        const auto ns =
            std::max<std::int64_t>(0, std::chrono::nanoseconds(frames_.top().arrives - Clock::now()).count());
        wait = {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
      }
      ppoll(polled.data(), polled.size(), &wait, nullptr);
      for (std::size_t i = 0; i < ports_.size(); ++i) {
        if ((polled[i].revents & POLLIN) != 0) take(i);
      }
      deliver();
    }
  }

 private:
  void take(std::size_t from) {
    for (;;) {
      const ssize_t size = read(ports_[from].device, buffer_.data(), buffer_.size());
      if (size < static_cast<ssize_t>(header + 14)) return;
      const Clock::time_point now = Clock::now();
      const auto bytes = static_cast<std::size_t>(size);
      Address to, source;
      std::memcpy(to.data(), buffer_.data() + header, 6);
      std::memcpy(source.data(), buffer_.data() + header + 6, 6);
      known_[source] = from;
      const auto found = known_.find(to);
      for (std::size_t i = 0; i < ports_.size(); ++i) {
        if (i == from || (found != known_.end() && found->second != i)) continue;
        frames_.push({arrival(from, i, bytes - header, now) + latency_,
                      turn_++,
                      i,
                      {buffer_.data(), buffer_.data() + bytes}});
      }
    }
  }
  /// Of the last bit, on the link of the sender and on that of the receiver at once.
  Clock::time_point arrival(std::size_t from, std::size_t to, std::size_t bytes, Clock::time_point now) {
    if (bits_ == 0) return now;
    // Of a packet: 66 bytes of headers of Ethernet, IP and TCP, 24 around it on the wire, 1,448 of data.
    const std::size_t data = bytes > 66 ? bytes - 66 : 0,
                      packets = std::max<std::size_t>(1, (data + 1447) / 1448);
    const double seconds =
        8 * static_cast<double>(std::max<std::size_t>(bytes, 60) + 24 + (packets - 1) * 90) / bits_;
    const auto time = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    auto &up = ports_[from].up_free, &down = ports_[to].down_free;
    const Clock::time_point begins = std::max(up, now);
    up = begins + time;
    down = std::max(down, begins) + time;
    return down;
  }
  void deliver() {
    while (!frames_.empty() && frames_.top().arrives <= Clock::now()) {
      const Frame& frame = frames_.top();
      static_cast<void>(!write(ports_[frame.to].device, frame.bytes.data(), frame.bytes.size()));
      frames_.pop();
    }
  }

  double bits_;  // per second; 0: no limit
  std::chrono::nanoseconds latency_;
  std::vector<Port> ports_;
  std::map<Address, std::size_t> known_;  // the port of each sender
  std::priority_queue<Frame> frames_;     // on their way, the first to arrive on top
  std::uint64_t turn_ = 0;
  std::vector<char> buffer_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fputs("usage: wire BITS_PER_SECOND LATENCY_US NAMESPACE...\n", stderr);
    return 2;
  }
  prctl(PR_SET_TIMERSLACK, 1UL);
  const sched_param first{1};
  sched_setscheduler(0, SCHED_FIFO, &first);  // the ranks use all cores
  Switch switched(std::atof(argv[1]),
                  std::chrono::nanoseconds(static_cast<std::int64_t>(std::atof(argv[2]) * 1000)),
                  {argv + 3, argv + argc});
  std::puts("ready");
  std::fflush(stdout);
  switched.run();
}
