// The fields of an answer, declared once: they make its JSON and the JSON Schema of it.
//
//   template <>
//   struct FieldsOf<Phase> {
//     static constexpr std::string_view name = "phase";  // optional: one definition, which others refer to
//     static constexpr std::string_view description = "…";  // optional
//     static constexpr std::tuple list{Field{"name", &Phase::name}, Field{"us", &Phase::us, "its own time"}};
//   };
//   ToJson(phase), SchemaOf<Phase>("title")
//
// A field's value is what its member, or a function of the owner (and of the context that ToJson got), gives: bool, numbers, text, optional
// values and pointers (null), vectors, maps by name (objects), structs with fields, enums that have a Name(). An enum whose last value is
// declared (LastOf) lists its names in the schema.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <ranges>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/json_writer.h"

namespace tlparse {

template <class Get>
struct Field {
  std::string_view name;
  Get get;
  std::string_view description = {};
  std::span<const std::string_view> words = {};  // of a text: the only ones
};
template <class Get>
Field(std::string_view, Get, std::string_view = {}, std::span<const std::string_view> = {})
    -> Field<Get>;

// A field that is missing where its value is nothing.
template <class Get>
struct Missable {
  std::string_view name;
  Get get;
  std::string_view description = {};
};
template <class Get>
Missable(std::string_view, Get, std::string_view = {}) -> Missable<Get>;

// The fields of a part, among those of its owner.
template <class Get>
struct Inlined {
  Get get;
};
template <class Get>
Inlined(Get) -> Inlined<Get>;

template <class Owner>
struct FieldsOf;
template <class Enum>
struct LastOf;

// An empty text is null.
template <class Owner>
struct OrNull {
  std::string Owner::*member;
  std::optional<std::string_view> operator()(const Owner& owner) const {
    const std::string& text = owner.*member;
    return text.empty() ? std::nullopt : std::optional<std::string_view>(text);
  }
};
template <class Owner>
OrNull(std::string Owner::*) -> OrNull<Owner>;

// A number that is not positive is null: the line of a place without one.
template <class Owner>
struct Positive {
  std::int64_t Owner::*member;
  std::optional<std::int64_t> operator()(const Owner& owner) const {
    return owner.*member > 0 ? std::optional(owner.*member) : std::nullopt;
  }
};
template <class Owner>
Positive(std::int64_t Owner::*) -> Positive<Owner>;

// A whole number that is never below `least`, as the schema says.
template <std::int64_t least>
struct Bounded {
  std::int64_t value = 0;
};
template <std::int64_t least, class Get>
constexpr auto AtLeast(Get get) {
  return [get](const auto& owner) {
    const auto& value = std::invoke(get, owner);
    if constexpr (std::is_integral_v<std::remove_cvref_t<decltype(value)>>) {
      return Bounded<least>{static_cast<std::int64_t>(value)};
    } else {
      return value ? std::optional(Bounded<least>{*value}) : std::nullopt;
    }
  };
}

namespace fields {

template <class T>
struct LeastOf : std::false_type {};
template <std::int64_t least>
struct LeastOf<Bounded<least>> : std::true_type {
  static constexpr std::int64_t number = least;
};

template <class T>
concept HasFields = requires {
  FieldsOf<T>::list;
};
template <class T>
concept IsText = std::convertible_to<const T&, std::string_view>;
template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsOptional<const T*> : std::true_type {};
template <class T>  // of an optional value
using Inner = std::remove_cvref_t<decltype(*std::declval<const T&>())>;
// A value for each name: an object.
template <class T>
concept IsByName = std::ranges::range<T> && !HasFields<std::ranges::range_value_t<T>> &&
                   requires(const std::ranges::range_value_t<T>& one) {
  { one.first } -> std::convertible_to<std::string_view>;
  one.second;
};
template <class>
struct IsInlined : std::false_type {};
template <class Get>
struct IsInlined<Inlined<Get>> : std::true_type {};
template <class>
struct IsMissable : std::false_type {};
template <class Get>
struct IsMissable<Missable<Get>> : std::true_type {};

template <class Get, class Owner, class Context>
decltype(auto) Read(const Get& get, const Owner& owner, const Context& context) {
  if constexpr (std::is_invocable_v<const Get&, const Owner&, const Context&>) {
    return std::invoke(get, owner, context);
  } else {
    return std::invoke(get, owner);
  }
}
template <class Owner, class Get, class Context>
using ValueOf = std::remove_cvref_t<decltype(Read(
    std::declval<const Get&>(), std::declval<const Owner&>(), std::declval<const Context&>()))>;

template <class T, class Context>
void Write(JsonWriter& json, const T& value, const Context& context);

template <class T, class Context>
void WriteMembers(JsonWriter& json, const T& value, const Context& context) {
  const auto write = [&]<class F>(const F& field) {
    if constexpr (IsInlined<F>::value) {
      WriteMembers(json, Read(field.get, value, context), context);
    } else if constexpr (IsMissable<F>::value) {
      const auto& read = Read(field.get, value, context);
      if (read) Write(json.Key(field.name), *read, context);
    } else {
      json.Key(field.name);
      Write(json, Read(field.get, value, context), context);
    }
  };
  std::apply([&](const auto&... field) { (write(field), ...); }, FieldsOf<T>::list);
}

template <class T, class Context>
void Write(JsonWriter& json, const T& value, const Context& context) {
  if constexpr (IsOptional<T>::value) {
    value ? Write(json, *value, context) : static_cast<void>(json.Null());
  } else if constexpr (std::is_same_v<T, bool>) {
    json.Bool(value);
  } else if constexpr (std::is_enum_v<T>) {
    json.String(Name(value));
  } else if constexpr (LeastOf<T>::value) {
    json.Int(value.value);
  } else if constexpr (std::is_integral_v<T>) {
    json.Int(static_cast<std::int64_t>(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    json.Real(value);
  } else if constexpr (IsText<T>) {
    json.String(value);
  } else if constexpr (HasFields<T>) {
    json.BeginObject();
    WriteMembers(json, value, context);
    json.EndObject();
  } else if constexpr (IsByName<T>) {
    json.BeginObject();
    for (const auto& [name, one] : value) Write(json.Key(name), one, context);
    json.EndObject();
  } else {
    static_assert(std::ranges::range<T>, "declare its fields: template <> struct FieldsOf<T>");
    json.BeginArray();
    for (const auto& one : value) Write(json, one, context);
    json.EndArray();
  }
}

// Definitions that are referred to, each once.
struct Definitions {
  std::set<std::string_view> names;
  std::string text;  // members of the object "definitions"
};

// Members of the schema of a value; no more than those of its type.
template <class T, class Context>
void DescribeType(JsonWriter& json, Definitions& definitions, bool is_nullable,
                  std::span<const std::string_view> words);

template <class T, class Context>
void DescribeField(JsonWriter& json, Definitions& definitions, std::string_view description,
                   std::span<const std::string_view> words) {
  json.BeginObject();
  if (!description.empty()) json.Key("description").String(description);
  DescribeType<T, Context>(json, definitions, false, words);
  json.EndObject();
}

template <class T, class Context, bool names_only>
void DescribeMembers(JsonWriter& json, Definitions& definitions) {
  const auto describe = [&]<class F>(const F& field) {
    if constexpr (IsInlined<F>::value) {
      DescribeMembers<ValueOf<T, decltype(field.get), Context>, Context, names_only>(json,
                                                                                     definitions);
    } else if constexpr (names_only) {
      if constexpr (!IsMissable<F>::value) json.String(field.name);
    } else if constexpr (IsMissable<F>::value) {
      using Value = Inner<ValueOf<T, decltype(field.get), Context>>;
      json.Key(field.name);
      DescribeField<Value, Context>(json, definitions, field.description, {});
    } else {
      json.Key(field.name);
      DescribeField<ValueOf<T, decltype(field.get), Context>, Context>(
          json, definitions, field.description, field.words);
    }
  };
  std::apply([&](const auto&... field) { (describe(field), ...); }, FieldsOf<T>::list);
}

inline void DescribeName(JsonWriter& json, std::string_view type, bool is_nullable) {
  json.Key("type");
  is_nullable ? json.BeginArray().String(type).String("null").EndArray() : json.String(type);
}

template <class T, class Context>
void DescribeObject(JsonWriter& json, Definitions& definitions, bool is_nullable) {
  DescribeName(json, "object", is_nullable);
  json.Key("additionalProperties").Bool(false).Key("required").BeginArray();
  DescribeMembers<T, Context, true>(json, definitions);
  json.EndArray().Key("properties").BeginObject();
  DescribeMembers<T, Context, false>(json, definitions);
  json.EndObject();
}

inline void DescribeWords(JsonWriter& json, std::span<const std::string_view> words,
                          bool is_nullable) {
  json.Key("enum").BeginArray();
  for (const std::string_view word : words) json.String(word);
  if (is_nullable) json.Null();
  json.EndArray();
}

template <class T>
void DescribeEnum(JsonWriter& json, bool is_nullable) {
  if constexpr (requires { LastOf<T>::value; }) {
    json.Key("enum").BeginArray();
    for (int i = 0; i <= static_cast<int>(LastOf<T>::value); ++i)
      json.String(Name(static_cast<T>(i)));
    if (is_nullable) json.Null();
    json.EndArray();
  } else {
    DescribeName(json, "string", is_nullable);
  }
}

template <class T, class Context>
void DescribeNamed(JsonWriter& json, Definitions& definitions, bool is_nullable) {
  constexpr std::string_view name = FieldsOf<T>::name;
  if (definitions.names.insert(name).second) {
    JsonWriter one;
    one.BeginObject();
    if constexpr (requires { FieldsOf<T>::description; })
      one.Key("description").String(FieldsOf<T>::description);
    DescribeObject<T, Context>(one, definitions, false);
    one.EndObject();
    if (!definitions.text.empty()) definitions.text += ',';
    AppendJsonString(name, definitions.text);
    definitions.text += ':' + one.text();
  }
  const std::string reference = "#/definitions/" + std::string(name);
  if (!is_nullable) {
    json.Key("$ref").String(reference);
    return;
  }
  json.Key("anyOf").BeginArray().BeginObject().Key("$ref").String(reference).EndObject();
  json.BeginObject().Key("type").String("null").EndObject().EndArray();
}

template <class T, class Context>
void DescribeType(JsonWriter& json, Definitions& definitions, bool is_nullable,
                  std::span<const std::string_view> words) {
  if constexpr (IsOptional<T>::value) {
    DescribeType<Inner<T>, Context>(json, definitions, true, words);
  } else if constexpr (std::is_same_v<T, bool>) {
    DescribeName(json, "boolean", is_nullable);
  } else if constexpr (std::is_enum_v<T>) {
    DescribeEnum<T>(json, is_nullable);
  } else if constexpr (LeastOf<T>::value) {
    DescribeName(json, "integer", is_nullable);
    json.Key("minimum").Int(LeastOf<T>::number);
  } else if constexpr (std::is_integral_v<T>) {
    DescribeName(json, "integer", is_nullable);
    if constexpr (std::is_unsigned_v<T>) json.Key("minimum").Int(0);
  } else if constexpr (std::is_floating_point_v<T>) {
    DescribeName(json, "number", is_nullable);
  } else if constexpr (IsText<T>) {
    words.empty() ? DescribeName(json, "string", is_nullable)
                  : DescribeWords(json, words, is_nullable);
  } else if constexpr (requires { FieldsOf<T>::name; }) {
    DescribeNamed<T, Context>(json, definitions, is_nullable);
  } else if constexpr (HasFields<T>) {
    DescribeObject<T, Context>(json, definitions, is_nullable);
  } else if constexpr (IsByName<T>) {
    DescribeName(json, "object", is_nullable);
    json.Key("additionalProperties");
    using Value = decltype(std::ranges::range_value_t<T>::second);
    DescribeField<Value, Context>(json, definitions, {}, {});
  } else {
    DescribeName(json, "array", is_nullable);
    json.Key("items");
    DescribeField<std::ranges::range_value_t<T>, Context>(json, definitions, {}, {});
  }
}

}  // namespace fields

struct NoContext {};

// `context`: what functions of fields get beside the owner.
template <class T, class Context = NoContext>
JsonWriter ToJson(const T& value, const Context& context = {}) {
  JsonWriter json;
  fields::Write(json, value, context);
  return json;
}

// JSON Schema, compact: of an answer, or of what is one of several `Objects`.
template <class Context, class... Objects>
std::string SchemaOfEither(std::string_view title, std::string_view description) {
  fields::Definitions definitions;
  JsonWriter json;
  json.BeginObject().Key("$schema").String("https://json-schema.org/draft/2020-12/schema");
  json.Key("$comment").String("made from the fields of the answer: tlparse schema");
  json.Key("title").String(title);
  if (!description.empty()) json.Key("description").String(description);
  if constexpr (sizeof...(Objects) == 1) {
    (fields::DescribeObject<Objects, Context>(json, definitions, false), ...);
  } else {
    json.Key("oneOf").BeginArray();
    (fields::DescribeField<Objects, Context>(json, definitions, {}, {}), ...);
    json.EndArray();
  }
  if (!definitions.text.empty()) json.Key("definitions").Raw("{" + definitions.text + "}");
  json.EndObject();
  return json.Take();
}

template <class T, class Context = NoContext>
std::string SchemaOf(std::string_view title) {
  std::string_view description;
  if constexpr (requires { FieldsOf<T>::description; }) description = FieldsOf<T>::description;
  return SchemaOfEither<Context, T>(title, description);
}

}  // namespace tlparse
