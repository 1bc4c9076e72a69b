// SPDX-License-Identifier: Apache-2.0
//
// A library to preload: the monotonic clock shows the processor time of the thread that reads it. On a machine
// that others use, runs of one thread are then measured without the time in which they had no core. The load of
// others is 0, or mica would not store figures that are lower than former ones.
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec* time) {
  return (int)syscall(SYS_clock_gettime, clock == CLOCK_MONOTONIC ? CLOCK_THREAD_CPUTIME_ID : clock, time);
}

int getloadavg(double loads[], int count) {
  for (int i = 0; i < count; ++i) loads[i] = 0;
  return count;
}
