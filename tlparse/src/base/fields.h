// The fields of an answer, declared once: they make its JSON and the JSON Schema of it.
//
//   template <>
//   struct FieldsOf<Phase> {
//     static constexpr std::string_view name = "phase";  // optional: one definition, which others refer to
//     static constexpr std::string_view description = "…";  // optional
//     static constexpr FieldList list{Field{"name", &Phase::name}, Field{"us", &Phase::us, "its own time"}};
//   };
//   ToJson(phase), SchemaOf<Phase>("title")
//
// A field's value is what its member, or a function of the owner (and of the context that ToJson got), gives: bool, numbers, text, optional
// values and pointers (null), vectors, maps by name (objects), structs with fields, enums that have a Name(). An enum whose last value is
// declared (LastOf) lists its names in the schema.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
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

// Fields of any types, in their order. std::tuple does the same for several times the time to compile.
template <std::size_t, class F>
struct FieldAt {
  F field;
};
template <class Indices, class... F>
struct FieldsAt;
template <std::size_t... index, class... F>
struct FieldsAt<std::index_sequence<index...>, F...> : FieldAt<index, F>... {
  constexpr explicit FieldsAt(const F&... field) : FieldAt<index, F>{field}... {}
  template <class Function>
  constexpr decltype(auto) Map(Function&& function) const {
    return function(static_cast<const FieldAt<index, F>&>(*this).field...);
  }
};
template <class... F>
struct FieldList : FieldsAt<std::index_sequence_for<F...>, F...> {
  constexpr explicit FieldList(const F&... field)
      : FieldsAt<std::index_sequence_for<F...>, F...>(field...) {}
};

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
  if constexpr (std::is_member_object_pointer_v<Get>) {
    return (owner.*get);
  } else if constexpr (requires { get(owner, context); }) {
    return get(owner, context);
  } else if constexpr (requires { get(owner); }) {
    return get(owner);
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
  FieldsOf<T>::list.Map([&](const auto&... field) { (write(field), ...); });
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

// What the schema says of a value's type, made by the compiler.
struct FieldSchema;
struct TypeSchema {
  enum class Kind { kBool, kInteger, kNumber, kText, kEnum, kObject, kByName, kArray, kNullable };
  Kind kind;
  std::string_view name = {};  // of an object that is a definition
  std::string_view description = {};
  std::optional<std::int64_t> minimum = {};
  std::string_view (*value_name)(int) = nullptr;  // of an enum whose last value is declared
  int last_value = 0;
  std::span<const FieldSchema> fields = {};
  const TypeSchema* inner = nullptr;  // of each value of a map or an array; of what may be null
};
struct FieldSchema {
  std::string_view name;
  std::string_view description;
  std::span<const std::string_view> words;
  const TypeSchema* type;
  bool is_missable = false;
  bool is_inlined = false;
};

template <class T, class Context>
struct SchemaFor {
  static const TypeSchema type;
};

template <class T, class Context, class F>
constexpr FieldSchema FieldSchemaOf(const F& field) {
  using Value = ValueOf<T, decltype(field.get), Context>;
  if constexpr (IsInlined<F>::value) {
    return {{}, {}, {}, &SchemaFor<Value, Context>::type, false, true};
  } else if constexpr (IsMissable<F>::value) {
    return {field.name, field.description, {}, &SchemaFor<Inner<Value>, Context>::type, true};
  } else {
    return {field.name, field.description, field.words, &SchemaFor<Value, Context>::type};
  }
}

template <class T, class Context>
struct ObjectFields {
  static constexpr auto schemas = FieldsOf<T>::list.Map(
      [](const auto&... field) { return std::array{FieldSchemaOf<T, Context>(field)...}; });
};

template <class T, class Context>
constexpr TypeSchema TypeSchemaOf() {
  using Kind = TypeSchema::Kind;
  if constexpr (IsOptional<T>::value) {
    return {.kind = Kind::kNullable, .inner = &SchemaFor<Inner<T>, Context>::type};
  } else if constexpr (std::is_same_v<T, bool>) {
    return {.kind = Kind::kBool};
  } else if constexpr (requires { LastOf<T>::value; }) {
    return {.kind = Kind::kEnum,
            .value_name = [](int value) -> std::string_view { return Name(static_cast<T>(value)); },
            .last_value = static_cast<int>(LastOf<T>::value)};
  } else if constexpr (LeastOf<T>::value) {
    return {.kind = Kind::kInteger, .minimum = LeastOf<T>::number};
  } else if constexpr (std::is_unsigned_v<T>) {
    return {.kind = Kind::kInteger, .minimum = 0};
  } else if constexpr (std::is_integral_v<T>) {
    return {.kind = Kind::kInteger};
  } else if constexpr (std::is_floating_point_v<T>) {
    return {.kind = Kind::kNumber};
  } else if constexpr (std::is_enum_v<T> || IsText<T>) {
    return {.kind = Kind::kText};
  } else if constexpr (HasFields<T>) {
    TypeSchema object{.kind = Kind::kObject, .fields = ObjectFields<T, Context>::schemas};
    if constexpr (requires { FieldsOf<T>::name; }) object.name = FieldsOf<T>::name;
    if constexpr (requires { FieldsOf<T>::description; })
      object.description = FieldsOf<T>::description;
    return object;
  } else if constexpr (IsByName<T>) {
    using Value = decltype(std::ranges::range_value_t<T>::second);
    return {.kind = Kind::kByName, .inner = &SchemaFor<Value, Context>::type};
  } else {
    using Value = std::ranges::range_value_t<T>;
    return {.kind = Kind::kArray, .inner = &SchemaFor<Value, Context>::type};
  }
}
template <class T, class Context>
constexpr TypeSchema SchemaFor<T, Context>::type = TypeSchemaOf<T, Context>();

}  // namespace fields

struct NoContext {};

// `context`: what functions of fields get beside the owner.
template <class T, class Context = NoContext>
JsonWriter ToJson(const T& value, const Context& context = {}) {
  JsonWriter json;
  fields::Write(json, value, context);
  return json;
}

// JSON Schema, compact: of an answer, or of what is one of several objects.
std::string SchemaText(std::string_view title, std::string_view description,
                       std::span<const fields::TypeSchema* const> objects);

template <class Context, class... Objects>
std::string SchemaOfEither(std::string_view title, std::string_view description) {
  return SchemaText(title, description, std::array{&fields::SchemaFor<Objects, Context>::type...});
}

template <class T, class Context = NoContext>
std::string SchemaOf(std::string_view title) {
  return SchemaOfEither<Context, T>(title, fields::SchemaFor<T, Context>::type.description);
}

}  // namespace tlparse
