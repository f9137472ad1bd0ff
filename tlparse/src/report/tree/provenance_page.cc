// provenance_tracking_<compile directory>.html: kernel → post-grad node → pre-grad node → source.
#include <fmt/format.h>

#include "report/report_context.h"
#include "report/tree/html.h"
#include "store/database.h"

namespace tlparse {
namespace {

class ProvenanceWriter {
 public:
  explicit ProvenanceWriter(const ReportContext& context) : context_(context) {}

  Result<void> Open() {
    Database& database = context_.database;
    ASSIGN_OR_RETURN(
        kernels_, database.Prepare("SELECT id, name, debug_handle, code_line, graph_id "
                                   "FROM kernel WHERE compile_id = ? ORDER BY graph_id, ordinal"));
    ASSIGN_OR_RETURN(
        nodes_, database.Prepare("SELECT post_grad_node FROM kernel_node_row WHERE kernel_id = ?"));
    ASSIGN_OR_RETURN(origins_,
                     database.Prepare("SELECT m.pre_grad_node FROM graph g JOIN node_mapping_row m "
                                      "ON m.content_id = g.provenance_content_id "
                                      "WHERE g.id = ? AND m.post_grad_node = ?"));
    ASSIGN_OR_RETURN(sources_,
                     database.Prepare("SELECT file, line, function, code FROM kernel_source "
                                      "WHERE kernel_id = ? ORDER BY stack_ordinal, frame_ordinal"));
    return {};
  }

  Result<void> WritePage(const std::string& directory, const std::vector<std::int64_t>& compiles) {
    RETURN_IF_ERROR(
        out_.Open(context_.directory, fmt::format("provenance_tracking_{}.html", directory)));
    AppendPageStart(fmt::format("Provenance {}", directory), out_);
    out_.Append(
        "<table>\n<tr><th>Kernel</th><th>Line of the code</th><th>Post-grad nodes and the pre-grad "
        "nodes they come from</th><th>Source</th></tr>\n");
    for (const std::int64_t compile : compiles) {
      kernels_.Bind(1, compile);
      while (true) {
        ASSIGN_OR_RETURN(const bool has_row, kernels_.Step());
        if (!has_row) break;
        RETURN_IF_ERROR(AppendKernel());
      }
    }
    out_.Append("</table>\n");
    AppendPageEnd(out_);
    return out_.Close();
  }

 private:
  Result<void> AppendKernel() {
    const std::int64_t kernel = kernels_.Int(0);
    out_.Append("<tr><td><code>");
    AppendHtmlText(kernels_.Text(1), out_);
    if (!kernels_.IsNull(2)) out_.Append(fmt::format(":{}", kernels_.Int(2)));
    out_.Append("</code></td><td>");
    if (!kernels_.IsNull(3)) out_.Append(std::to_string(kernels_.Int(3)));
    out_.Append("</td><td>");
    RETURN_IF_ERROR(AppendNodes(kernel, kernels_.Int(4)));
    out_.Append("</td><td><pre>");
    sources_.Bind(1, kernel);
    while (true) {
      ASSIGN_OR_RETURN(const bool has_source, sources_.Step());
      if (!has_source) break;
      AppendHtmlText(fmt::format("{}:{} in {}\n    {}\n", sources_.Text(0), sources_.Int(1),
                                 sources_.Text(2), sources_.Text(3)),
                     out_);
    }
    out_.Append("</pre></td></tr>\n");
    return {};
  }

  Result<void> AppendNodes(std::int64_t kernel, std::int64_t graph) {
    nodes_.Bind(1, kernel);
    while (true) {
      ASSIGN_OR_RETURN(const bool has_node, nodes_.Step());
      if (!has_node) return {};
      const std::string node(nodes_.Text(0));
      out_.Append("<div><code>");
      AppendHtmlText(node, out_);
      out_.Append("</code>");
      origins_.Bind(1, graph);
      origins_.Bind(2, std::string_view(node));
      std::string_view separator = " \u2190 ";
      while (true) {
        ASSIGN_OR_RETURN(const bool has_origin, origins_.Step());
        if (!has_origin) break;
        out_.Append(separator);
        AppendHtmlText(origins_.Text(0), out_);
        separator = ", ";
      }
      out_.Append("</div>");
    }
  }

  const ReportContext& context_;
  Statement kernels_;
  Statement nodes_;
  Statement origins_;
  Statement sources_;
  FileWriter out_;
};

}  // namespace

Result<void> WriteProvenancePages(const ReportContext& context, const TreePlan& plan) {
  ProvenanceWriter writer(context);
  RETURN_IF_ERROR(writer.Open());
  for (std::size_t i = 0; i < plan.directories.size(); ++i) {
    const std::string& directory = plan.directories[i];
    if (directory == "dump_file" || directory == "payloads") continue;
    RETURN_IF_ERROR(writer.WritePage(directory, plan.compiles[i]));
  }
  return {};
}

}  // namespace tlparse
