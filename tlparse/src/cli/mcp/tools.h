// The tools of `tlparse mcp`: each is a command of tlparse, whose --json it answers.
#pragma once

#include <simdjson.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_writer.h"
#include "base/result.h"

namespace tlparse {

struct McpArgument {
  enum class Type : std::uint8_t { kText, kNumber, kFlag };
  std::string_view name;
  Type type;
  std::string_view description;
  std::string_view choices = {};  // separated by '|'; empty: any
  bool is_required = false;
  bool is_positional = false;  // of the command: behind the database
};

struct McpTool {
  std::string_view name;         // of the tool, and of the command unless `command` says another
  std::string_view description;  // for the agent
  std::span<const McpArgument> arguments;     // each is an option of the command: rank, --rank
  std::string_view rows;                      // member of the answer that is paged
  std::span<const std::string_view> omitted;  // members of the answer that are left out
  std::string_view schema;                    // stem of its file in schemas/json
  std::string_view command = {};
  // Member of the answer that says how many rows there are, of a command that has --limit and --skip:
  // only the rows that can be shown are asked for.
  std::string_view row_count = {};
};

std::span<const McpTool> McpTools();
const McpTool* FindMcpTool(std::string_view name);

constexpr std::size_t kLeastBudget = 500, kMostBudget = 50000;

// Checked arguments of a call.
struct McpCall {
  std::string database;              // as the agent named it; empty: the first
  std::vector<std::string> options;  // of the command
  std::vector<std::string> names;    // its positional arguments behind the database
  std::vector<std::pair<std::string, std::string>> texts;  // arguments by name
  std::string list;  // whose items are asked for; empty: the rows
  std::size_t cursor = 0, limit = 0, budget = 2000;
  std::string_view Text(std::string_view name) const;
};
// kUsage: an argument that is unknown, missing, or of another type; the message says which.
Result<McpCall> ReadCall(const McpTool& tool, simdjson::dom::element arguments);

// {"name", "description", "inputSchema", "outputSchema", "annotations"}
void WriteTool(JsonWriter& json, const McpTool& tool);

}  // namespace tlparse
