// The numbers, and the peers of sends and receives, of a dump's entries.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "inputs/common/plain_value.h"

namespace tlparse {

// A number that a JSON dump may write as text.
std::optional<std::int64_t> NumberOf(const PlainValue& value);

struct EntryNumber {
  bool is_p2p = false;
  std::optional<std::int64_t> sequence = {};
  std::string op = {};  // the entry's name, with the peer where it is known: "ncclx:send 0->1"
};

// One for each of the entries of the dump. The recorder of c10d numbers the calls of each group, and its
// sends and receives apart. That of TorchComms numbers all calls of a process as one, tells sends and
// receives by their names alone, and has no peers: here its calls are counted by group, if the dump begins
// with the first and lacks none (otherwise they have no number), and a send or a receive of a group of
// two goes to the other rank. `rank`: of the dump.
std::vector<EntryNumber> NumberEntries(const PlainValue& root, std::optional<std::int64_t> rank);

}  // namespace tlparse
