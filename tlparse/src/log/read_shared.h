// What the steps of reading share over all files and threads of a load.
#pragma once

#include <cstdint>
#include <shared_mutex>

#include "log/envelope.h"
#include "log/payload_index.h"

namespace tlparse {

struct ReadShared {
  PayloadIndex* index;                                  // payloads of the database
  std::int64_t next_payload_id;                         // ascends by one per new payload
  std::uint64_t fingerprint_seed;                       // random per process
  EnvelopeParser::IsRecordKey is_record_key = nullptr;  // which keys name a kind of record
  std::shared_mutex index_mutex{};                      // of *index while windows are read
};

}  // namespace tlparse
