// When `tlparse run` judged that its command hangs, and where the processes were then.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

// Processes whose main threads were at one place.
struct HangPlace {
  std::vector<std::int64_t> ranks;
  std::string who;    // "ranks 0,1"; "pid 27447"
  std::string where;  // "/app/train.py:21 in validate, which called barrier"
  // Where their other threads were, in the same form, if the main thread waited for threads.
  std::vector<std::string> threads;

  void AddProcess(std::string_view pid);  // "pid 12", of one without rank
  bool HasSeveral() const;                // processes
  // The main thread waits for what a child of its process does.
  bool WaitsForChild() const;
  bool IsInDebugger() const { return where.ends_with(", which called pdb"); }
  // "in barrier at train.py:21"; "at train.py:21"; "in join at a.py:9 (another thread at a.py:4)".
  std::string ShortWhere() const;
};

// A rank that waits to send to, or to receive from, another.
struct HangWait {
  std::int64_t rank = 0, peer = 0;
  std::string text;   // "recv from rank 1"; "send to rank 0 with tag 4"
  std::string where;  // "/app/train.py:21 in forward, which called recv"
  std::int64_t tag = 0;
  bool IsSend() const { return text.starts_with("send to "); }
};

// A process that a rank had started, as a worker of a DataLoader.
struct HangChild {
  std::int64_t pid = 0;
  std::string where;      // as of HangPlace
  std::int64_t rank = 0;  // whose it is
};

struct Hang {
  std::int64_t profile_id = 0;  // the run.json
  std::int64_t time_us = 0;
  std::string why;                // a clause: "no process of the command has used the CPU for 26 s"
  bool was_ended = false;         // `tlparse run` ended the command then (--on-hang kill)
  bool was_signalled = false;     // the command or all its ranks, which signals ended later
  std::vector<HangPlace> places;  // of the ranks; where there is none, of all processes
  std::vector<HangWait> waits;
  std::vector<HangChild> children;   // of ranks
  std::vector<std::string> threads;  // "3 other threads of rank 2 (pid 7) were at …"
  // When ranks that lived then had been started, as others of the same rank had ended; nothing: they
  // were the first.
  std::optional<std::int64_t> again_us = {};
  std::vector<std::int64_t> busy = {};  // ranks that alone used the CPU; empty: no rank did

  // Ranks each of which waits for the next and the last for the first; else the one that waits for none,
  // and is waited for, alone; nothing: no rank waits for another.
  std::vector<std::int64_t> Awaited() const;
  const HangWait* WaitOf(std::int64_t rank) const;    // null: it waits for no one rank
  const HangPlace* PlaceOf(std::int64_t rank) const;  // null: not known

  // "ranks 0,1 were at a.py:21 in f; rank 2 was at a.py:27 in g".
  std::string PlacesText() const;
  // "ranks 0,1 in barrier at a.py:21, rank 2 at a.py:27"; of more than 4 places 3, and how many more.
  std::string ShortPlaces() const;
};

// In order of time. Empty: there was none, or no run.json was read.
Result<std::vector<Hang>> LoadHangs(Database& database, std::int64_t run_id);

}  // namespace tlparse
