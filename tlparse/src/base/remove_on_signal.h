// Deletes a temporary file or directory when the process is ended by Ctrl+C, SIGTERM or SIGHUP.
#pragma once

#include <csignal>
#include <cstddef>
#include <string>

namespace tlparse {

// While an object exists, one of these signals deletes `path`, a file or a directory that holds
// nothing but such files, before the process ends by it. A signal that is ignored (nohup) stays
// ignored. Works for a few paths at a time; one beyond that limit is not deleted.
class RemoveOnSignal {
 public:
  explicit RemoveOnSignal(std::string path);
  ~RemoveOnSignal();
  RemoveOnSignal(const RemoveOnSignal&) = delete;
  RemoveOnSignal& operator=(const RemoveOnSignal&) = delete;

 private:
  std::string path_;
  std::size_t slot_;
};

// Signals that RemoveOnSignal is for come to this thread when this ends: between the making of a file
// and its RemoveOnSignal none does.
class HoldSignals {
 public:
  HoldSignals();
  ~HoldSignals();
  HoldSignals(const HoldSignals&) = delete;
  HoldSignals& operator=(const HoldSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace tlparse
