// The content (store/content_registry.h) that is derived from a record's payload.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "artifacts/artifact.h"
#include "store/hash128.h"

namespace tlparse {

// One of normalize.h.
using Normalizer = std::string_view (*)(std::string_view text, std::string& buffer);

inline void PrepareContent(Normalizer normalize, const RecordToPrepare& record, std::string& buffer,
                           PreparedRecord& prepared) {
  if (!record.payload.empty()) prepared.content_hash = HashBytes(normalize(record.payload, buffer));
}
// Of the payload's normal form: that of PrepareContent, where the record was prepared.
inline Hash128 PayloadHash(Normalizer normalize, IngestContext& context, std::string& buffer) {
  const std::optional<Hash128>& prepared = context.prepared().content_hash;
  return prepared ? *prepared : HashBytes(normalize(context.Payload(), buffer));
}

// Nothing without a payload. `buffer` is scratch.
inline std::optional<std::int64_t> PayloadContent(ContentKind kind, Normalizer normalize,
                                                  const Record& record, IngestContext& context,
                                                  std::string& buffer) {
  if (record.payload_id == 0) return std::nullopt;
  if (const auto known = context.contents().OfPayload(kind, record.payload_id)) return known;
  const Hash128 hash = PayloadHash(normalize, context, buffer);
  const ContentId content = context.contents().Intern(context.rows(), kind, hash, record.id);
  context.contents().LinkPayload(context.rows(), kind, record.payload_id, content.id);
  return content.id;
}

}  // namespace tlparse
