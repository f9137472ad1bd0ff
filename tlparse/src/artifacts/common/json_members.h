// Members of a JSON object that may be missing, null or of another type than expected of the kind
// of record. Views live as long as the parsed document (see IngestContext::Metadata and
// PayloadJson).
#pragma once

#include <simdjson.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "artifacts/artifact.h"

namespace tlparse {

// An integer, or a number that has no fraction and fits; nothing otherwise.
inline std::optional<std::int64_t> AsInt(const simdjson::dom::element& element) {
  std::int64_t integer = 0;
  if (element.get(integer) == simdjson::SUCCESS) return integer;
  double real = 0;
  if (element.get(real) == simdjson::SUCCESS && std::nearbyint(real) == real &&
      std::fabs(real) < 9.2e18) {
    return static_cast<std::int64_t>(real);
  }
  return std::nullopt;
}

// The member `name` if it is a string, otherwise an empty text.
inline std::string_view StringMember(const simdjson::dom::object& object, std::string_view name) {
  std::string_view text;
  return object.at_key(name).get(text) == simdjson::SUCCESS ? text : std::string_view();
}

// Reads members by name. Returns nothing for a member that is missing or null; for one of the wrong
// type it returns nothing and adds an import_log row, and the other members are kept.
class JsonMembers {
 public:
  // `code` is kBadMetadata or kBadPayload, depending on where the object came from.
  JsonMembers(simdjson::dom::object object, IngestContext& context, ImportCode code)
      : object_(object), context_(&context), code_(code) {}

  // Nothing if missing or null.
  std::optional<simdjson::dom::element> Any(std::string_view name) const {
    simdjson::dom::element element;
    if (object_.at_key(name).get(element) != simdjson::SUCCESS || element.is_null())
      return std::nullopt;
    return element;
  }
  std::optional<std::string_view> String(std::string_view name) const {
    return Get<std::string_view>(name, "a string");
  }
  std::optional<bool> Bool(std::string_view name) const { return Get<bool>(name, "true or false"); }
  std::optional<double> Number(std::string_view name) const {
    return Get<double>(name, "a number");
  }
  std::optional<simdjson::dom::array> Array(std::string_view name) const {
    return Get<simdjson::dom::array>(name, "a list");
  }
  std::optional<simdjson::dom::object> Object(std::string_view name) const {
    return Get<simdjson::dom::object>(name, "an object");
  }
  std::optional<std::int64_t> Int(std::string_view name) const {
    const std::optional<simdjson::dom::element> element = Any(name);
    if (!element) return std::nullopt;
    const std::optional<std::int64_t> value = AsInt(*element);
    if (!value) Odd(name, "an integer");
    return value;
  }

  void Odd(std::string_view name, std::string_view expected) const {
    context_->Log(code_, "member '" + std::string(name) + "' is not " + std::string(expected));
  }

 private:
  template <typename T>
  std::optional<T> Get(std::string_view name, std::string_view expected) const {
    const std::optional<simdjson::dom::element> element = Any(name);
    if (!element) return std::nullopt;
    T value;
    if (element->get(value) == simdjson::SUCCESS) return value;
    Odd(name, expected);
    return std::nullopt;
  }

  simdjson::dom::object object_;
  IngestContext* context_;
  ImportCode code_;
};

// The payload, which must be a JSON object.
inline Result<simdjson::dom::object> PayloadObject(IngestContext& context) {
  ASSIGN_OR_RETURN(const simdjson::dom::element payload, context.PayloadJson());
  simdjson::dom::object object;
  if (payload.get(object) != simdjson::SUCCESS)
    return Fail(ErrorCode::kBadJson, "the payload is not a JSON object");
  return object;
}

// The metadata, which must be a JSON object.
inline Result<simdjson::dom::object> MetadataObject(IngestContext& context) {
  ASSIGN_OR_RETURN(const simdjson::dom::element metadata, context.Metadata());
  simdjson::dom::object object;
  if (metadata.get(object) != simdjson::SUCCESS)
    return Fail(ErrorCode::kBadJson, "the metadata is not a JSON object");
  return object;
}

}  // namespace tlparse
