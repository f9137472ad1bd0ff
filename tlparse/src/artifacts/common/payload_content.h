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

// Nothing without a payload. `buffer` is scratch.
inline std::optional<std::int64_t> PayloadContent(ContentKind kind, Normalizer normalize,
                                                  const Record& record, IngestContext& context,
                                                  std::string& buffer) {
  if (record.payload_id == 0) return std::nullopt;
  if (const auto known = context.contents().OfPayload(kind, record.payload_id)) return known;
  const Hash128 hash = HashBytes(normalize(context.Payload(), buffer));
  const ContentId content = context.contents().Intern(context.rows(), kind, hash, record.id);
  context.contents().LinkPayload(context.rows(), kind, record.payload_id, content.id);
  return content.id;
}

}  // namespace tlparse
