#include "report/tree/record_page.h"

#include <fmt/format.h>

#include "base/json_count.h"
#include "queries/report/tree/record_page.h"
#include "report/output_directory.h"
#include "report/tree/html.h"

namespace tlparse {
namespace {

std::string ValueText(const simdjson::dom::element& value) {
  std::string_view text;
  if (value.get(text) == simdjson::SUCCESS) return std::string(text);
  return simdjson::minify(value);
}

// Some logs have their line breaks escaped twice.
std::string WithLineBreaks(std::string text) {
  if (text.find('\n') != std::string::npos) return text;
  for (std::size_t at = text.find("\\n"); at != std::string::npos; at = text.find("\\n", at)) {
    text.erase(at, 1);
    text[at] = '\n';
  }
  return text;
}

// Members that are null are left out, as there are many; stacks are below the table.
void AppendMembers(const simdjson::dom::object& object, FileWriter& out) {
  constexpr std::size_t kFoldedBytes = 400;
  out.Append("<table>\n");
  for (const auto member : object) {
    if (member.value.is_null() || member.key == "stack" || member.key == "user_stack") continue;
    const std::string text = ValueText(member.value);
    out.Append("<tr><th>");
    AppendHtmlText(member.key, out);
    out.Append("</th><td>");
    const bool is_long = text.size() > kFoldedBytes;
    if (is_long) out.Append(fmt::format("<details><summary>{} bytes</summary>", text.size()));
    out.Append("<pre>");
    AppendHtmlText(text, out);
    out.Append(is_long ? "</pre></details></td></tr>\n" : "</pre></td></tr>\n");
  }
  out.Append("</table>\n");
}

void AppendStack(std::string_view heading, const std::vector<const StackFrame*>& stack,
                 std::string_view path_to_tree, FileWriter& out) {
  if (stack.empty()) return;
  out.Append(fmt::format("<h2>{}</h2>\n<div class=\"stack\"><ul>\n", heading));
  for (const StackFrame* frame : stack) {
    out.Append("<li>");
    AppendFrame(*frame, std::string(path_to_tree), out);
    out.Append("</li>\n");
  }
  out.Append("</ul></div>\n");
}

}  // namespace

Result<RecordPages> RecordPages::Open(Database& database) {
  RecordPages pages;
  pages.database_ = &database;
  ASSIGN_OR_RETURN(StackReader stacks, StackReader::Open(database));
  pages.stacks_ = std::move(stacks);
  return pages;
}

Result<void> RecordPages::AppendMetadataPage(std::int64_t record_id, std::string_view title,
                                             std::string_view path_to_tree, FileWriter& out) {
  AppendPageStart(title, out);
  ASSIGN_OR_RETURN(const FirstRow<RecordOfPage> record,
                   First(KeptQuery<RecordOfPage>(*database_, {.id = record_id})));
  if (record) {
    simdjson::dom::object members;
    if (parser_.Parse(record->envelope) && parser_.is_whole() &&
        parser_.root().at_key(record->kind).get(members) == simdjson::SUCCESS) {
      AppendMembers(members, out);
    } else {
      out.Append("<pre>");
      AppendHtmlText(record->envelope, out);
      out.Append("</pre>\n");
    }
    ASSIGN_OR_RETURN(const auto user_stack, stacks_.Stack(record->user_stack_id));
    AppendStack("User stack", user_stack, path_to_tree, out);
    ASSIGN_OR_RETURN(const auto stack, stacks_.Stack(record->stack_id));
    AppendStack("Stack", stack, path_to_tree, out);
  }
  AppendPageEnd(out);
  return {};
}

void AppendGuardsPage(std::string_view payload, std::string_view title, FileWriter& out) {
  AppendPageStart(title, out);
  simdjson::dom::parser parser;
  simdjson::dom::array guards;
  if (!HasTooManyJsonValues(payload) &&
      parser.parse(payload.data(), payload.size()).get(guards) == simdjson::SUCCESS) {
    out.Append("<ul>\n");
    for (const simdjson::dom::element guard : guards) {
      simdjson::dom::element code;
      out.Append("<li><code>");
      AppendHtmlText(ValueText(guard.at_key("code").get(code) == simdjson::SUCCESS ? code : guard),
                     out);
      out.Append("</code></li>\n");
    }
    out.Append("</ul>\n");
  } else {
    AppendNumberedLines(payload, out);
  }
  AppendPageEnd(out);
}

void AppendStackTracesPage(std::string_view payload, std::string_view title, FileWriter& out) {
  AppendPageStart(title, out);
  simdjson::dom::parser parser;
  simdjson::dom::object kernels;
  if (HasTooManyJsonValues(payload)) {
    out.Append("<p>There are too many to be shown here: see the file beside this page.</p>\n");
  } else if (parser.parse(payload.data(), payload.size()).get(kernels) == simdjson::SUCCESS) {
    for (const auto kernel : kernels) {
      out.Append("<h2>");
      AppendHtmlText(kernel.key, out);
      out.Append("</h2>\n");
      simdjson::dom::array stacks;
      if (kernel.value.get(stacks) != simdjson::SUCCESS) continue;
      for (const simdjson::dom::element stack : stacks) {
        out.Append("<pre>");
        AppendHtmlText(WithLineBreaks(ValueText(stack)), out);
        out.Append("</pre>\n");
      }
    }
  }
  AppendPageEnd(out);
}

}  // namespace tlparse
