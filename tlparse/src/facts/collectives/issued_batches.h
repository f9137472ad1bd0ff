// Calls that were issued as one batch ("coalesced"), and sends and receives; a part of LoadIssued.
#pragma once

#include <vector>

#include "facts/collectives/issued.h"

namespace tlparse {

// Whether it is the recorder's entry of a batch, which stands behind those of its members under
// their number, and not a call of its own.
bool IsEndOfBatch(const IssuedCollective& one);

// How many calls were coalesced, without the entry that ends the batch; 1 of a single call.
std::size_t MembersOfBatch(const std::vector<const IssuedCollective*>& calls);

// A member of a batch has no state of its own: its entry stays "scheduled" whatever becomes of it.
// It gets the state of its batch, where the dump has that. `issued` is ascending by number.
void SettleBatches(std::vector<IssuedCollective>& issued);

// The sends and receives of one rank in a group, from its calls: their names tell the peers
// ("nccl:send 0->1"). Entries of batches are left out. `issued` is as above.
std::vector<IssuedMessage> MessagesOf(const std::vector<IssuedCollective>& issued);

// "[_broadcast_oop [4, 4] Float, _broadcast_oop [5, 5] Float] from train.py:10": the members of a
// batch; of a single call its title.
std::string BatchTitle(const std::vector<const IssuedCollective*>& calls);

}  // namespace tlparse
