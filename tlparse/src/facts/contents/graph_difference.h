// Where two Dynamo graphs first differ, and the Python line of that node.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/database.h"

namespace tlparse {

struct GraphDifference {
  bool differs = false;
  // "name = operation"; empty: the graph has no node there. a is the graph that is compared with. Nodes
  // that differ in numbers alone, as by sizes, are named where no others differ.
  std::string a_node, b_node;
  // "file:line in function: code", of the caller where that is torch's code; empty: not in the log
  std::string a_source, b_source;
  // Of b's node, else of a's.
  const std::string& Source() const { return b_source.empty() ? a_source : b_source; }
  std::size_t only_in_a = 0, only_in_b = 0;  // nodes
  bool is_of_numbers = false;                // all nodes that differ do so in numbers alone
  bool is_of_groups = false;                 // in names of process groups alone
  bool is_of_parameters = false;             // one side takes parameters that the other does not
};

// The names of process groups in functional collectives removed: the last string argument of a
// _c10d_functional call.
std::string WithoutGroups(std::string_view text);

// Aligns the nodes of two contents (content ids of graphs that have graph_node rows), each of its
// own database.
Result<GraphDifference> CompareGraphs(Database& a_database, std::int64_t a_content_id,
                                      Database& b_database, std::int64_t b_content_id);

// The nodes of a difference, "a → b".
std::string NodeChange(const std::string& a_node, const std::string& b_node);

// Whether the texts of two such contents differ, but not without their comments. False if a text is
// not in its database.
Result<bool> DifferInComments(Database& a_database, std::int64_t a_content_id, Database& b_database,
                              std::int64_t b_content_id);

}  // namespace tlparse
