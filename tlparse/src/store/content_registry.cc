#include "store/content_registry.h"

#include <array>

#include "rows/core.h"
#include "store/database.h"

namespace tlparse {

namespace {
constexpr std::array<std::string_view, 11> kNames = {
    "graph",       "code",       "code_kernels",    "guard_tree",     "schedule", "op_list",
    "op_estimate", "provenance", "execution_order", "triton_kernels", "text"};
static_assert(static_cast<std::size_t>(ContentKind::kText) + 1 == kNames.size());

std::uint64_t PayloadKey(ContentKind kind, std::int64_t payload_id) {
  return static_cast<std::uint64_t>(payload_id) << 8 | static_cast<std::uint64_t>(kind);
}
}  // namespace

std::string_view Name(ContentKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

ContentRegistry::ContentRegistry(TableSet& tables) {
  tables.Use<ContentRow>();
  tables.Use<PayloadContentRow>();
}

Result<void> ContentRegistry::Load(Database& database) {
  std::unordered_map<std::int64_t, ContentKind> kinds;
  ASSIGN_OR_RETURN(Statement contents, database.Prepare("SELECT id, kind, hash FROM content_row"));
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, contents.Step());
    if (!has_row) break;
    const std::optional<Hash128> hash = FromHex(contents.Text(2));
    for (std::size_t kind = 0; hash && kind < kNames.size(); ++kind) {
      if (kNames[kind] != contents.Text(1)) continue;
      ids_.emplace(Key{*hash, static_cast<ContentKind>(kind)}, contents.Int(0));
      kinds.emplace(contents.Int(0), static_cast<ContentKind>(kind));
    }
    if (contents.Int(0) >= next_) next_ = contents.Int(0) + 1;
  }
  ASSIGN_OR_RETURN(Statement links,
                   database.Prepare("SELECT payload_id, content_id FROM payload_content_row"));
  while (true) {
    ASSIGN_OR_RETURN(const bool has_row, links.Step());
    if (!has_row) return {};
    if (auto kind = kinds.find(links.Int(1)); kind != kinds.end()) {
      of_payload_.emplace(PayloadKey(kind->second, links.Int(0)), links.Int(1));
    }
  }
}

ContentId ContentRegistry::Intern(RowBatch& rows, ContentKind kind, const Hash128& hash,
                                  std::int64_t record_id) {
  const auto [entry, is_new] = ids_.try_emplace(Key{hash, kind}, next_);
  if (is_new) {
    ++next_;
    rows.Add(ContentRow{.id = entry->second,
                        .kind = StaticText{Name(kind)},
                        .hash = ToHex(hash),
                        .record_id = record_id});
  }
  return {entry->second, is_new};
}

std::optional<std::int64_t> ContentRegistry::OfPayload(ContentKind kind,
                                                       std::int64_t payload_id) const {
  if (payload_id == 0) return std::nullopt;
  auto found = of_payload_.find(PayloadKey(kind, payload_id));
  if (found == of_payload_.end()) return std::nullopt;
  return found->second;
}

void ContentRegistry::LinkPayload(RowBatch& rows, ContentKind kind, std::int64_t payload_id,
                                  std::int64_t content_id) {
  if (payload_id == 0) return;
  if (of_payload_.emplace(PayloadKey(kind, payload_id), content_id).second) {
    rows.Add(PayloadContentRow{.payload_id = payload_id, .content_id = content_id});
  }
}

}  // namespace tlparse
