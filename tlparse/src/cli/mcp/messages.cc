#include "cli/mcp/messages.h"

#include <fmt/format.h>

#include "base/printable.h"

namespace tlparse {

using simdjson::dom::element;

McpMessage::McpMessage(std::string_view line) : parser_(std::make_unique<simdjson::dom::parser>()) {
  element root;
  if (parser_->parse(simdjson::padded_string(line)).get(root) != simdjson::SUCCESS) {
    error_ = kParseError;
    return;
  }
  simdjson::dom::object members;
  std::string_view version, method;
  if (root.get(members) != simdjson::SUCCESS ||
      members["jsonrpc"].get(version) != simdjson::SUCCESS || version != "2.0") {
    error_ = kInvalidRequest;
    return;
  }
  if (element id; members["id"].get(id) == simdjson::SUCCESS) {
    if (id.is_string() || id.is_int64() || id.is_uint64()) {
      id_ = simdjson::minify(id);
    } else {
      error_ = kInvalidRequest;
    }
  }
  if (members["method"].get(method) == simdjson::SUCCESS) {
    method_ = method;
  } else if (element result; members["result"].get(result) != simdjson::SUCCESS &&
                             members["error"].get(result) != simdjson::SUCCESS) {
    error_ = kInvalidRequest;
  }
  if (members["params"].get(params_) != simdjson::SUCCESS) {
    // An element is made by a parser alone.
    static simdjson::dom::parser nothing;
    static const element kNull = nothing.parse(std::string_view("null")).value_unsafe();
    params_ = kNull;
  } else if (!params_.is_object() && !params_.is_array() && !params_.is_null()) {
    error_ = kInvalidRequest;
  }
}

std::optional<std::string> McpMessage::ParamText(std::string_view name) const {
  std::string_view text;
  simdjson::dom::object members;
  if (params_.get(members) != simdjson::SUCCESS || members[name].get(text) != simdjson::SUCCESS)
    return std::nullopt;
  return std::string(text);
}

std::string ResultLine(const std::string& id, const JsonWriter& result) {
  JsonWriter json;
  json.BeginObject().Key("jsonrpc").String("2.0").Key("id").Raw(id).Key("result");
  json.Raw(result.text()).EndObject();
  return json.Take() + "\n";
}

std::string ErrorLine(const std::string& id, int code, std::string_view message) {
  JsonWriter json;
  json.BeginObject().Key("jsonrpc").String("2.0").Key("id").Raw(id).Key("error").BeginObject();
  json.Key("code").Int(code).Key("message").String(message).EndObject().EndObject();
  return json.Take() + "\n";
}

std::string MessageOf(const ChildAnswer& answer) {
  std::string_view text = answer.message;
  constexpr std::string_view kProgram = "tlparse: ";
  if (text.starts_with(kProgram)) text.remove_prefix(kProgram.size());
  text = text.substr(0, text.find_last_not_of('\n') + 1);
  if (text.empty()) return fmt::format("the answer ended with code {}", answer.code);
  return Printable(text.substr(0, 1000), true);
}

}  // namespace tlparse
