// index.html of one participant: failures, where compiles come from, what they left.
#include "queries/report/tree/index_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "artifacts/common/compile_status.h"
#include "report/report_context.h"
#include "report/tree/file_name.h"
#include "report/tree/html.h"
#include "report/tree/record_scan.h"
#include "report/tree/stack_text.h"
#include "store/database.h"

namespace tlparse {
namespace {

struct Compile {
  std::int64_t id = 0;
  std::int64_t stack_id = 0;
  std::string label;
  std::string status;
  std::string function;
  std::string place;  // file:line
  std::optional<std::int64_t> duration_us;
  std::optional<std::int64_t> backward_us;
};

Result<std::vector<Compile>> ReadCompiles(const ReportContext& context) {
  std::vector<Compile> compiles;
  for (const ReportProcess& process : context.participant.processes) {
    FOR_EACH_ROW(const CompileOfIndex& row,
                 Query<CompileOfIndex>(context.database, {.process_id = process.id})) {
      Compile compile;
      compile.id = row.id;
      compile.stack_id = row.stack_id.value_or(0);
      compile.label = row.label;
      compile.status = row.status;
      compile.function = row.function;
      if (row.file) compile.place = fmt::format("{}:{}", *row.file, row.line.value_or(0));
      compile.duration_us = row.duration_us;
      compile.backward_us = row.backward_duration_us;
      compiles.push_back(std::move(compile));
    }
  }
  std::sort(compiles.begin(), compiles.end(),
            [](const Compile& a, const Compile& b) { return a.id < b.id; });
  return compiles;
}

std::string Seconds(const std::optional<std::int64_t>& us) {
  return us ? fmt::format("{:.3f}", static_cast<double>(*us) / 1e6) : std::string();
}

// Our own words from the database, but a foreign database may say anything.
std::string StatusClass(std::string_view status) {
  const std::string_view known = Name(CompileStatusFrom(status));
  return known == status ? std::string(known) : "quiet";
}

void AppendCompiles(const std::vector<Compile>& compiles, FileWriter& out) {
  out.Append(fmt::format("<h2>Compiles ({})</h2>\n", compiles.size()));
  out.Append(
      "<table>\n<tr><th>Compile</th><th>Status</th><th>Seconds</th><th>Backward</th>"
      "<th>Function</th><th>Place</th></tr>\n");
  for (const Compile& compile : compiles) {
    out.Append(fmt::format(
        "<tr><td><a href=\"#k{}\">{}</a></td><td class=\"{}\">{}</td><td>{}</td><td>{}</td>"
        "<td>{}</td><td>{}</td></tr>\n",
        UrlFromPath(compile.label), Html(compile.label), StatusClass(compile.status),
        Html(compile.status), Seconds(compile.duration_us), Seconds(compile.backward_us),
        Html(compile.function), Html(compile.place)));
  }
  out.Append("</table>\n");
}

// The frames above all compiles as a tree: a frame whose stacks part gets a level of its own.
class StackTrie {
 public:
  void Add(const std::vector<const StackFrame*>& stack, const Compile& compile) {
    const StackFrame* parent = nullptr;
    for (const StackFrame* frame : stack) {
      Node& node = nodes_[frame];
      if (!node.is_known) {
        node.is_known = true;
        (parent == nullptr ? roots_ : nodes_[parent].children).push_back(frame);
      }
      parent = frame;
    }
    (parent == nullptr ? without_stack_ : nodes_[parent].compiles).push_back(&compile);
  }

  // Without recursion: a stack may be as deep as it likes.
  void AppendTo(FileWriter& out) {
    struct Level {
      const std::vector<const StackFrame*>* frames;
      std::size_t next;
      bool has_list;  // a list of its own was opened for it
    };
    out.Append("<div class=\"stack\"><ul>\n");
    AppendCompileLinks(without_stack_, out);
    std::vector<Level> levels = {{&roots_, 0, false}};
    while (!levels.empty()) {
      Level& level = levels.back();
      if (level.next == level.frames->size()) {
        if (level.has_list) out.Append("</ul></li>\n");
        levels.pop_back();
        continue;
      }
      const bool parts = level.frames->size() > 1;
      const StackFrame* const frame = (*level.frames)[level.next++];
      out.Append("<li>");
      AppendFrame(*frame, "", out);
      out.Append("</li>\n");
      const Node& node = nodes_.at(frame);
      AppendCompileLinks(node.compiles, out);
      const bool has_list = parts && !node.children.empty();
      if (has_list) out.Append("<li><ul>\n");
      levels.push_back({&node.children, 0, has_list});
    }
    out.Append("</ul></div>\n");
  }

 private:
  struct Node {
    bool is_known = false;
    std::vector<const StackFrame*> children;
    std::vector<const Compile*> compiles;
  };

  static void AppendCompileLinks(const std::vector<const Compile*>& compiles, FileWriter& out) {
    if (compiles.empty()) return;
    out.Append("<li>");
    for (const Compile* compile : compiles) {
      out.Append(fmt::format(" <a class=\"{}\" href=\"#k{}\">[{}]</a>",
                             StatusClass(compile->status), UrlFromPath(compile->label),
                             Html(compile->label)));
    }
    out.Append("</li>\n");
  }

  std::unordered_map<const StackFrame*, Node> nodes_;
  std::vector<const StackFrame*> roots_;
  std::vector<const Compile*> without_stack_;
};

Result<void> AppendStackTrie(const ReportContext& context, const std::vector<Compile>& compiles,
                             FileWriter& out) {
  ASSIGN_OR_RETURN(StackReader frames, StackReader::Open(context.database));
  StackTrie trie;
  for (const Compile& compile : compiles) {
    ASSIGN_OR_RETURN(const auto stack, frames.Stack(compile.stack_id));
    trie.Add(stack, compile);
  }
  out.Append("<h2>Stacks that led to compiles</h2>\n");
  trie.AppendTo(out);
  return {};
}

// A link from the log: only to the web, never a script.
bool IsWebUrl(std::string_view url) {
  return url.starts_with("https://") || url.starts_with("http://");
}

void AppendArtifact(const TreePlan& plan, const PlannedFile& file, FileWriter& out) {
  out.Append("<li>");
  if (file.form == FileForm::kLink) {
    const std::string& url = plan.link_urls[static_cast<std::size_t>(file.payload_id)];
    if (IsWebUrl(url)) {
      out.Append(
          fmt::format("<a rel=\"noreferrer\" href=\"{}\">{}</a>", Html(url), Html(file.name)));
    } else {
      out.Append(fmt::format("{}: {}", Html(file.name), Html(url)));
    }
  } else {
    const std::string path = plan.Path(file);
    out.Append(Link(path, path));
    if (!file.readable_name.empty()) {
      out.Append(" (" + Link(plan.ReadablePath(file), "readable") + ")");
    }
    out.Append(' ');
    out.Append(CacheSuffix(path));
  }
  out.Append(fmt::format(" <span class=\"quiet\">({})</span></li>\n", file.number));
}

// "[!1/0/0_2]" → "!1/0/0": what the compile's label says.
std::string_view LabelOf(std::string_view key) {
  key = key.substr(1, key.size() - 2);
  return key.substr(0, key.find('_'));
}

void AppendArtifacts(const TreePlan& plan, FileWriter& out) {
  out.Append("<h2>Artifacts by compile id</h2>\n");
  std::string_view last_label;
  for (const PlannedKey& key : plan.keys) {
    const std::string_view label = LabelOf(key.key);
    out.Append(fmt::format("<h3 id=\"{}\">", Html(key.key)));
    // The first attempt is where links from compiles arrive.
    if (label != last_label) {
      out.Append(fmt::format("<span id=\"k{}\"></span>", Html(UrlFromPath(label))));
    }
    last_label = label;
    AppendHtmlText(key.key == "[-/-]" ? "[-/-] (no compile id)" : key.key, out);
    out.Append("</h3>\n<ul>\n");
    for (const std::uint32_t index : key.files) AppendArtifact(plan, plan.files[index], out);
    out.Append("</ul>\n");
  }
}

// Fake kernels that are missing or wrong: records without a file of their own.
Result<void> AppendFakeKernels(const ReportContext& context, FileWriter& out) {
  ASSIGN_OR_RETURN(
      RecordScan scan,
      RecordScan::Open(
          context.database, context.participant,
          "k.text AS kind, "
          "coalesce(r.metadata, r.envelope -> ('$.' || k.text)) ->> '$.op' AS op, "
          "coalesce(r.metadata, r.envelope -> ('$.' || k.text)) ->> '$.reason' AS reason",
          "JOIN text_row k ON k.id = r.kind_id",
          "k.text IN ('missing_fake_kernel', 'mismatched_fake_kernel')"));
  FOR_EACH_ROW(const AnyRow& row, std::move(scan)) {
    out.Append(row.Text("kind") == "missing_fake_kernel"
                   ? "<li>an operator has no fake kernel: <code>"
                   : "<li>a fake kernel is wrong: <code>");
    AppendHtmlText(row.Text("op"), out);
    out.Append("</code> ");
    AppendHtmlText(row.Text("reason"), out);
    out.Append("</li>\n");
  }
  return {};
}

Result<void> AppendExportSummary(const ReportContext& context, const TreePlan& plan,
                                 FileWriter& out) {
  out.Append("<h2>Export</h2>\n<ul>\n");
  for (const PlannedFile& file : plan.files) {
    const bool is_symbol = file.form == FileForm::kSymbolPage;
    if (!is_symbol && file.form != FileForm::kText) continue;
    out.Append(is_symbol ? "<li>an expression was specialised: " : "<li>exported program: ");
    out.Append(Link(plan.Path(file), file.name));
    out.Append("</li>\n");
  }
  RETURN_IF_ERROR(AppendFakeKernels(context, out));
  out.Append(
      "</ul>\n<p class=\"quiet\">Guards, data-dependent expressions and fake kernels are in the "
      "log only if it was recorded with TORCH_DTRACE.</p>\n");
  return {};
}

}  // namespace

Result<void> WriteIndexPage(const ReportContext& context, const TreePlan& plan) {
  ASSIGN_OR_RETURN(const std::vector<Compile> compiles, ReadCompiles(context));
  const std::size_t failures = FailuresOf(context.participant, context.failures).size();
  FileWriter out;
  RETURN_IF_ERROR(out.Open(context.directory, context.participant.directory.empty()
                                                  ? context.options.root_index_name
                                                  : std::string("index.html")));
  AppendPageStart(fmt::format("PyTorch compile report: {}", context.participant.title),
                  context.options.custom_header_html, out);
  out.Append("<p>");
  AppendHtmlText(context.participant.log_path, out);
  out.Append("</p>\n<ul>\n");
  out.Append(
      fmt::format("<li><a href=\"failures_and_restarts.html\">{} failures and restarts</a>"
                  "</li>\n",
                  failures));
  out.Append(
      "<li><a href=\"chromium_events.json\">chromium_events.json</a> (timeline; open it in a trace "
      "viewer)</li>\n<li><a href=\"compile_directory.json\">compile_directory.json</a></li>\n"
      "<li><a href=\"raw.jsonl\">raw.jsonl</a></li>\n</ul>\n");
  if (context.options.export_report) RETURN_IF_ERROR(AppendExportSummary(context, plan, out));
  AppendCompiles(compiles, out);
  RETURN_IF_ERROR(AppendStackTrie(context, compiles, out));
  AppendArtifacts(plan, out);
  if (context.options.inductor_provenance) {
    out.Append("<h2>Provenance</h2>\n<ul>\n");
    for (const std::string& directory : plan.directories) {
      if (directory == "dump_file" || directory == "payloads") continue;
      const std::string name = fmt::format("provenance_tracking_{}.html", directory);
      out.Append("<li>" + Link(name, name) + "</li>\n");
    }
    out.Append("</ul>\n");
  }
  AppendPageEnd(out);
  return out.Close();
}

}  // namespace tlparse
