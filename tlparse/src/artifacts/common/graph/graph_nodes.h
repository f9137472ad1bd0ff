// Nodes of a printed FX graph, each with the source line that the comment above it names
// (torch/fx/graph.py, _python_code):
//
//     # File: /home/u/m.py:15 in forward, code: h = F.gelu(self.a(x))
//     linear: "f32[3, 10]cpu" = torch._C._nn.linear(l_x_, w);  w = None
//     h: "f32[3, 10]cpu" = torch._C._nn.gelu(linear);  linear = None
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "store/text_pool.h"

namespace tlparse {

struct SourceLine {
  std::string_view file;
  std::int64_t line = 0;
  std::string_view function;
  std::string_view code;
  bool is_backward = false;  // the node below is the backward of this line ("Backward of forward
                             // node:", 2.14)
};

// Views into the text that was parsed.
struct ParsedGraph {
  struct Node {
    std::string_view name;
    std::string_view operation;  // what it calls: torch._C._nn.linear; else the expression: a + b
    int source = -1;             // index into `sources`; -1: the text names none
  };
  std::vector<SourceLine> sources;
  std::vector<Node> nodes;
};

// Replaces the content of `graph`. Linear in the text's size; other lines than statements are
// skipped.
void ParseGraphNodes(std::string_view text, ParsedGraph& graph);

// Parses a line "# File: …" without its leading blanks; false if it is not such a comment.
bool ParseSourceComment(std::string_view line, SourceLine& source);

// Source lines of a graph's nodes by name, as the database's text ids. Immutable once made.
class GraphNodes {
 public:
  struct Source {
    TextId file = 0;
    std::int64_t line = 0;
    TextId function = 0;     // 0: none
    TextId code = 0;         // 0: none
    std::uint64_t hash = 0;  // of the texts: ids differ by database
    bool operator==(const Source&) const = default;
  };
  static std::uint64_t HashOf(const SourceLine& source);
  // The first of several nodes of one name counts. Nodes without a source are left out.
  GraphNodes(const ParsedGraph& graph, const std::vector<Source>& sources);
  const Source* Find(std::string_view node) const;
  // Of a node that is the backward of that line; nullptr: it is not, or the text does not say so.
  const Source* FindBackward(std::string_view node) const;
  // Whether a node of that line is there that is not its backward: a forward node that a backward
  // graph computes again.
  bool HasForward(const Source& source) const;
  std::size_t size_bytes() const {
    return names_.size() + entries_.size() * sizeof(Entry) + sources_.size() * sizeof(Source) +
           forward_hashes_.size() * sizeof(std::uint64_t);
  }

 private:
  struct Entry {
    std::uint32_t begin;  // in names_
    std::uint32_t size;
    std::uint32_t source : 31;
    std::uint32_t is_backward : 1;
  };
  const Entry* FindEntry(std::string_view node) const;
  std::string_view NameOf(const Entry& entry) const {
    return std::string_view(names_).substr(entry.begin, entry.size);
  }
  std::string names_;
  std::vector<Entry> entries_;                 // by name
  std::vector<std::uint64_t> forward_hashes_;  // of the sources of nodes that are no backward
  std::vector<Source> sources_;
};

// The nodes of the most recently used graphs, by content id: kernels are joined with them when
// their graph closes. Bounded: the graph of a late lazy backward may have been dropped; its kernels
// then have only the sources that their artifacts name.
class GraphNodePool {
 public:
  explicit GraphNodePool(std::size_t max_bytes = 12 << 20) : max_bytes_(max_bytes) {}
  void Put(std::int64_t content_id, std::shared_ptr<const GraphNodes> nodes);
  // nullptr if unknown or dropped.
  std::shared_ptr<const GraphNodes> Find(std::int64_t content_id);

 private:
  struct Item {
    std::int64_t content_id;
    std::shared_ptr<const GraphNodes> nodes;
  };
  std::size_t max_bytes_;
  std::size_t bytes_ = 0;
  std::list<Item> items_;  // the most recently used first
  std::unordered_map<std::int64_t, std::list<Item>::iterator> by_content_;
};

// The contents of the graphs that were printed for a graph, for GraphTracker::nodes(); 0: none. With
// a compile: those printed for its next graph. The AOTAutograd graphs replace the post-grad graph
// where that is not logged (2.6, cache hit).
struct PrintedGraphs {
  std::int64_t pre_grad_content_id = 0;
  std::int64_t post_grad_content_id = 0;
  std::int64_t aot_forward_content_id = 0;  // or of inference
  std::int64_t aot_backward_content_id = 0;
};

}  // namespace tlparse
