// Which records Options::limits leaves out.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "libtrace/options.h"

namespace libtrace::detail {

class RecordLimits {
 public:
  explicit RecordLimits(const std::vector<RecordLimit>& limits);

  bool empty() const { return counters_.empty(); }
  // Counts a record of this kind; whether it is to be written. Thread-safe, waits for nothing.
  bool Admit(std::string_view kind) noexcept;

 private:
  struct Counter {
    RecordLimit limit;
    std::atomic<uint64_t> seen_count{0};
    std::atomic<uint64_t> second_and_count{0};  // 32 bits each: steady clock, admitted in it
  };

  std::map<std::string, Counter, std::less<>> counters_;
};

}  // namespace libtrace::detail
