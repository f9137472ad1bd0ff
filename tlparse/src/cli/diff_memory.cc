#include "cli/diff_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/human_bytes.h"
#include "cli/rank_output.h"
#include "cli/terminal.h"
#include "facts/text/shorten.h"

namespace tlparse {
namespace {

std::string Holder(const MemoryChange& change) {
  const MemoryRow& row = change.row;
  std::string text;
  if (!row.file.empty())
    text = fmt::format("{}:{}", row.file, row.line.value_or(0));
  else if (!row.label.empty())
    text = fmt::format("{} {}", row.label, row.direction);
  else
    text = fmt::format("({})", row.reason);
  if (change.a_line) text += fmt::format(" (line {} in a)", *change.a_line);
  return row.function.empty() ? text : fmt::format("{} {}", text, Shorten(row.function, 40));
}

// The device of the recordings: "device 0 of rank 2".
std::string ComparedDevice(const MemoryDifference& memory) {
  const MemoryDevice &a = memory.a, &b = memory.b;
  std::string text = b.device ? fmt::format("device {}", *b.device) : "the " + b.source;
  if (a.rank && b.rank)
    text += a.rank == b.rank ? fmt::format(" of rank {}", *b.rank)
                             : fmt::format(" of ranks {} and {}", *a.rank, *b.rank);
  return text;
}

std::string FileName(const MemoryDevice& device) {
  return device.path.substr(device.path.rfind('/') + 1);
}

void PrintHeld(const MemoryDifference& memory, bool all) {
  using Align = Table::Align;
  Table table({{"more", Align::kRight}, {"a", Align::kRight}, {"b", Align::kRight}, {"held by"}});
  constexpr std::size_t kMost = 10;
  std::size_t count = 0, less_count = 0;
  std::int64_t left_out = 0, less = 0;
  std::size_t left_out_count = 0;
  for (const MemoryChange& change : memory.changes) {
    const std::int64_t more = change.b_bytes - change.a_bytes;
    if (more <= 0) {
      less += more;
      less_count += more < 0 ? 1 : 0;
    } else if (!all && count == kMost) {
      left_out += more;
      ++left_out_count;
    } else {
      ++count;
      table.Add({HumanBytes(more), HumanBytes(change.a_bytes), HumanBytes(change.b_bytes),
                 Holder(change)});
    }
  }
  if (!table.empty()) table.Print();
  if (left_out_count > 0)
    PrintWrapped(fmt::format("and {} more of {} (--all)", HumanBytes(left_out),
                             Count(left_out_count, "other holder")),
                 2, 4);
  if (less_count == 0) return;
  std::string text = fmt::format("{} less of {}", HumanBytes(-less), Count(less_count, "holder"));
  const std::size_t shown = all ? less_count : std::min<std::size_t>(less_count, 3);
  for (std::size_t i = 0; i < shown; ++i) {
    const MemoryChange& change = memory.changes[memory.changes.size() - 1 - i];
    text += fmt::format("{} {} of {}", i == 0 ? ":" : ",",
                        HumanBytes(change.a_bytes - change.b_bytes), Holder(change));
  }
  PrintWrapped(text + (shown < less_count ? " and others (--all)" : ""), 2, 4);
}

}  // namespace

void PrintMemoryDifference(const MemoryDifference& memory, bool all) {
  const std::int64_t a = memory.a.alive_bytes, b = memory.b.alive_bytes;
  std::fputc('\n', stdout);
  PrintWrapped(
      fmt::format("memory alive at the peak of {}: a {} ({}), b {} ({}){}", ComparedDevice(memory),
                  HumanBytes(a), FileName(memory.a), HumanBytes(b), FileName(memory.b),
                  a > 0 ? fmt::format(": {:+.0f} %",
                                      100 * (static_cast<double>(b) / static_cast<double>(a) - 1))
                        : std::string()),
      0, 2);
  if (memory.device_count > 1)
    PrintWrapped(fmt::format("{} {}: 'tlparse memory' has all",
                             b > a ? "the peak that grew most, of" : "no peak grew, of",
                             Count(memory.device_count, "device")),
                 2, 4);
  const bool is_same =
      std::all_of(memory.changes.begin(), memory.changes.end(),
                  [](const MemoryChange& one) { return one.a_bytes == one.b_bytes; });
  if (is_same)
    PrintWrapped("the same lines hold the same bytes", 2, 4);
  else
    PrintHeld(memory, all);
}

}  // namespace tlparse
