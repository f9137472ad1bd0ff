// The part of `tlparse collectives` about sends and receives: a row for each pair of ranks and
// direction.
#pragma once

#include <cstdint>
#include <string>

#include "facts/collectives/issued.h"

namespace tlparse {

void PrintMessages(const IssuedJob& job);
void PrintProfiledMessages(const IssuedJob& job);
std::string RankOfGroup(const IssuedJob& job, const MessageGroup& group, std::int64_t rank);

}  // namespace tlparse
