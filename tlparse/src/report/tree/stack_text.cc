#include "report/tree/stack_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "queries/report/tree/stack_text.h"
#include "report/output_directory.h"
#include "report/tree/html.h"

namespace tlparse {

Result<StackReader> StackReader::Open(Database& database) {
  StackReader reader;
  reader.database_ = &database;
  return reader;
}

Result<std::vector<const StackFrame*>> StackReader::Stack(std::int64_t id) {
  std::vector<const StackFrame*> stack;
  while (id != 0) {
    auto known = frames_.find(id);
    if (known == frames_.end()) {
      ASSIGN_OR_RETURN(const FirstRow<FrameOfTree> row,
                       First(KeptQuery<FrameOfTree>(*database_, {.id = id})));
      if (!row) break;
      StackFrame frame;
      frame.id = id;
      // Callers are stored first; anything else would be a cycle.
      const std::int64_t parent_id = row->parent_id.value_or(0);
      frame.parent_id = parent_id < id ? parent_id : 0;
      frame.file = row->file;
      frame.line = row->line.value_or(0);
      frame.function = row->function;
      frame.code = row->code;
      known = frames_.emplace(id, std::move(frame)).first;
    }
    stack.push_back(&known->second);
    id = known->second.parent_id;
  }
  std::reverse(stack.begin(), stack.end());
  return stack;
}

void AppendFrame(const StackFrame& frame, const std::string& path_to_tree, FileWriter& out) {
  const std::string place = fmt::format("{}:{}", frame.file.empty() ? "?" : frame.file, frame.line);
  constexpr std::string_view kGenerated = "<eval_with_key>.";
  const std::size_t mark = frame.file.find(kGenerated);
  if (mark == std::string::npos) {
    AppendHtmlText(place, out);
  } else {
    const std::string id = frame.file.substr(mark + kGenerated.size());
    const std::string digits = id.substr(0, id.find_first_not_of("0123456789"));
    out.Append(Link(fmt::format("{}dump_file/eval_with_key_{}.html", path_to_tree, digits), place,
                    fmt::format("L{}", frame.line)));
  }
  out.Append(" in ");
  AppendHtmlText(frame.function, out);
  if (!frame.code.empty()) {
    out.Append("  <span class=\"quiet\">");
    AppendHtmlText(frame.code, out);
    out.Append("</span>");
  }
}

}  // namespace tlparse
