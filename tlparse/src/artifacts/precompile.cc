// Entries of precompiled code (torch/_dynamo/precompile_context.py, create_cache_entries):
// dynamo_cache_entries lists what is about to be saved, dynamo_cache_exception names one that could
// not be put together. What a compile or an entry leaves out is a lookup that was bypassed
// (cache_event.cc: precompile_cache_bypass, dynamo_cache_bypass).
#include "rows/precompile.h"

#include <charconv>
#include <set>

#include "artifacts/common/json_rows.h"

namespace tlparse {
namespace {

class PrecompiledEntries final : public Ingestor {
 public:
  void Prepare(TableSet& tables) override {
    tables.Use<PrecompileEntryRow>();
    tables.Use<PrecompileExceptionRow>();
  }

  Result<void> Ingest(const Record& record, IngestContext& context) override {
    ASSIGN_OR_RETURN(const simdjson::dom::object object, PayloadObject(context));
    const CellMembers payload(object, context);
    if (record.name == "dynamo_cache_exception") {
      context.rows().Add(PrecompileExceptionRow{
          .record_id = record.id, .key = payload.Text("key"), .error = payload.Text("error")});
      return {};
    }
    const std::optional<simdjson::dom::object> lists = payload.Object("artifacts");
    if (!lists) return {};
    const CellMembers artifacts(*lists, context);
    std::set<std::string_view> held;
    ForEachText(artifacts, "backends", [&](std::string_view backend) { held.insert(backend); });
    ForEachObject(artifacts, "dynamo", context,
                  [&](std::int64_t ordinal, const CellMembers& entry) {
                    Add(record.id, ordinal, entry, held, context);
                  });
    return {};
  }

 private:
  // Of a list that PyTorch leaves out where it is empty.
  template <class Take>
  static void ForEachText(const CellMembers& of, std::string_view name, Take take) {
    const std::optional<simdjson::dom::array> list = of.Array(name);
    if (!list) return;
    for (const simdjson::dom::element& element : *list) {
      std::string_view text;
      if (element.get(text) == simdjson::SUCCESS) take(text);
    }
  }

  static void Add(std::int64_t record_id, std::int64_t ordinal, const CellMembers& entry,
                  const std::set<std::string_view>& held, IngestContext& context) {
    std::int64_t backends = 0, missing = 0;
    ForEachText(entry, "backend_ids", [&](std::string_view backend) {
      ++backends;
      if (!held.contains(backend)) ++missing;
    });
    context.rows().Add(PrecompileEntryRow{.record_id = record_id,
                                          .ordinal = ordinal,
                                          .key = entry.Text("key"),
                                          .function = entry.Text("fn_name"),
                                          .line = entry.Int("fn_first_lineno"),
                                          .device_type = entry.Text("device_type"),
                                          .codes = Codes(entry),
                                          .backends = backends,
                                          .missing_backends = missing});
  }

  // PyTorch writes the number as a text.
  static std::optional<std::int64_t> Codes(const CellMembers& entry) {
    const std::optional<std::string_view> text = entry.String("num_codes");
    std::int64_t codes = 0;
    if (!text) return std::nullopt;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), codes);
    if (error == std::errc() && end == text->data() + text->size()) return codes;
    entry.Odd("num_codes", "a number");
    return std::nullopt;
  }
};

}  // namespace

TLPARSE_ARTIFACT(precompile, PrecompiledEntries, StandsAlone("artifact/dynamo_cache_entries"),
                 "artifact/dynamo_cache_exception")

}  // namespace tlparse
