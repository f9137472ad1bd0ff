// How long the steps of profiled programs wait for their data: for the next batch of a DataLoader.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// Of one profile, on the thread that asked a loader most often. A period begins where it asks for a batch
// and ends where it asks for the next.
struct LoaderWait {
  std::int64_t profile_id = 0;
  std::string path;
  std::optional<std::int64_t> rank;
  std::int64_t start_us = 0;
  std::string name;  // of the call: "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
  std::size_t periods = 0;
  bool has_device = false;  // a device ran anything
  // Medians of the periods: how long one is, how long the call lasts, and how long no device ran
  // anything meanwhile.
  double period_us = 0, call_us = 0, wait_us = 0;
  // The innermost function of the user in which half of the calls' time and more went: "train.py(6): __getitem__";
  // empty: the profile has no Python stacks, or there is none.
  std::string frame;
  double frame_share = 0;  // of the calls' time

  double Share() const { return period_us > 0 ? wait_us / period_us : 0; }
  // Batches are made in the process itself: num_workers is 0.
  bool IsOfOwnProcess() const { return name.find("_SingleProcess") != std::string::npos; }
};

// Profiles with less than two periods have none.
Result<std::vector<LoaderWait>> LoaderWaits(Database& database, std::int64_t run_id);

}  // namespace tlparse
