#include "runner/profile_demand.h"

#include <signal.h>

#include <atomic>

#include "runner/proc_file.h"

namespace tlparse {

namespace {

std::atomic<bool> is_demanded = false;

}  // namespace

int DemandSignal() { return SIGPROF; }

void ListenForDemands() {
  struct sigaction action {};
  action.sa_handler = [](int) { is_demanded = true; };
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(DemandSignal(), &action, nullptr);
}

bool TakeDemand() { return is_demanded.exchange(false); }

int AskForProfiles(const RecordPlaces& places, const std::vector<WatchedProcess>& processes) {
  int asked = 0;
  for (const WatchedProcess& process : processes) {
    // The file is open where our hook was loaded and the program has not closed it.
    const bool listens = !process.ended_us && HandlesSignal(process.pid, ProfileSignal()) &&
                         HasOpen(process.pid, places.stacks);
    if (listens && kill(process.pid, ProfileSignal()) == 0) ++asked;
  }
  return asked;
}

}  // namespace tlparse
