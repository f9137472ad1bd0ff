// Members of JSON objects as cells of rows, for families whose payloads are lists of flat objects.
#pragma once

#include <optional>
#include <string_view>

#include "artifacts/common/json_members.h"
#include "artifacts/common/text/safe_text.h"

namespace tlparse {

// JsonMembers whose texts fit a TEXT column of a row of the current batch.
class CellMembers : public JsonMembers {
 public:
  CellMembers(simdjson::dom::object object, IngestContext& context)
      : JsonMembers(object, context, ImportCode::kBadPayload), rows_(&context.rows()) {}

  std::optional<StaticText> Text(std::string_view name) const {
    const std::optional<std::string_view> text = String(name);
    return text ? std::optional(SafeText(*rows_, *text)) : std::nullopt;
  }
  // A list or an object, as JSON.
  std::optional<StaticText> ListJson(std::string_view name) const { return Json(Array(name)); }
  std::optional<StaticText> ObjectJson(std::string_view name) const { return Json(Object(name)); }

 private:
  template <typename T>
  std::optional<StaticText> Json(const std::optional<T>& value) const {
    return value ? std::optional(SafeText(*rows_, simdjson::minify(*value))) : std::nullopt;
  }

  RowBatch* rows_;
};

// Calls `add(ordinal, members)` for every object of `list`. An element of another type becomes a
// row of import_log and still has an ordinal.
template <typename Add>
void ForEachObject(const simdjson::dom::array& list, std::string_view what, IngestContext& context,
                   Add&& add) {
  std::int64_t ordinal = 0;
  for (const simdjson::dom::element& element : list) {
    simdjson::dom::object object;
    if (element.get(object) == simdjson::SUCCESS) {
      add(ordinal, CellMembers(object, context));
    } else {
      context.Log(ImportCode::kBadPayload,
                  std::string(what) + " " + std::to_string(ordinal) + " is not an object");
    }
    ++ordinal;
  }
}

// The same for the list that is a member of `payload`; nothing if there is none.
template <typename Add>
void ForEachObject(const JsonMembers& payload, std::string_view list_name, IngestContext& context,
                   Add&& add) {
  if (const std::optional<simdjson::dom::array> list = payload.Array(list_name)) {
    ForEachObject(*list, "element of '" + std::string(list_name) + "'", context, add);
  }
}

}  // namespace tlparse
