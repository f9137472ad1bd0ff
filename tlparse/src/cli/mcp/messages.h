// Messages of JSON-RPC 2.0, one a line.
#pragma once

#include <simdjson.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/json_writer.h"
#include "cli/mcp/child.h"

namespace tlparse {

inline constexpr int kParseError = -32700, kInvalidRequest = -32600, kMethodNotFound = -32601,
                     kInvalidParams = -32602, kResourceNotFound = -32002;

// A line of the client's. `params` lives as long as the object.
class McpMessage {
 public:
  explicit McpMessage(std::string_view line);

  bool IsRequest() const { return id_.has_value() && !method_.empty(); }
  bool IsNotification() const { return !id_ && !method_.empty(); }
  // Set: it is no message; the error's code.
  const std::optional<int>& error() const { return error_; }
  const std::string& method() const { return method_; }
  std::string id() const { return id_.value_or("null"); }  // as JSON
  // Null if there are none.
  simdjson::dom::element params() const { return params_; }
  // A member of `params` that is text; nothing: it is not there, or is no text.
  std::optional<std::string> ParamText(std::string_view name) const;

 private:
  std::unique_ptr<simdjson::dom::parser> parser_;  // an element points into it
  std::optional<std::string> id_;
  std::string method_;
  simdjson::dom::element params_;
  std::optional<int> error_;
};

std::string ResultLine(const std::string& id, const JsonWriter& result);
std::string ErrorLine(const std::string& id, int code, std::string_view message);
// What a child printed of its failure, without the program's name.
std::string MessageOf(const ChildAnswer& answer);

}  // namespace tlparse
