// provenance_tracking_<compile directory>.html: kernel → post-grad node → pre-grad node → source.
#include "queries/report/tree/provenance_page.h"

#include <fmt/format.h>

#include "report/report_context.h"
#include "report/tree/html.h"
#include "store/database.h"

namespace tlparse {
namespace {

class ProvenanceWriter {
 public:
  explicit ProvenanceWriter(const ReportContext& context) : context_(context) {}

  Result<void> WritePage(const std::string& directory, const std::vector<std::int64_t>& compiles) {
    RETURN_IF_ERROR(
        out_.Open(context_.directory, fmt::format("provenance_tracking_{}.html", directory)));
    AppendPageStart(fmt::format("Provenance {}", directory), out_);
    out_.Append(
        "<table>\n<tr><th>Kernel</th><th>Line of the code</th><th>Post-grad nodes and the pre-grad "
        "nodes they come from</th><th>Source</th></tr>\n");
    for (const std::int64_t compile : compiles) {
      FOR_EACH_ROW(const KernelOfPage& kernel,
                   Query<KernelOfPage>(context_.database, {.compile_id = compile})) {
        RETURN_IF_ERROR(AppendKernel(kernel));
      }
    }
    out_.Append("</table>\n");
    AppendPageEnd(out_);
    return out_.Close();
  }

 private:
  Result<void> AppendKernel(const KernelOfPage& kernel) {
    out_.Append("<tr><td><code>");
    AppendHtmlText(kernel.name, out_);
    if (kernel.debug_handle) out_.Append(fmt::format(":{}", *kernel.debug_handle));
    out_.Append("</code></td><td>");
    if (kernel.code_line) out_.Append(std::to_string(*kernel.code_line));
    out_.Append("</td><td>");
    RETURN_IF_ERROR(AppendNodes(kernel));
    out_.Append("</td><td><pre>");
    FOR_EACH_ROW(const SourceOfKernel& source,
                 KeptQuery<SourceOfKernel>(context_.database, {.kernel_id = kernel.id})) {
      AppendHtmlText(fmt::format("{}:{} in {}\n    {}\n", source.file, source.line.value_or(0),
                                 source.function, source.code),
                     out_);
    }
    out_.Append("</pre></td></tr>\n");
    return {};
  }

  Result<void> AppendNodes(const KernelOfPage& kernel) {
    FOR_EACH_ROW(const PostGradNode& node,
                 KeptQuery<PostGradNode>(context_.database, {.kernel_id = kernel.id})) {
      out_.Append("<div><code>");
      AppendHtmlText(node.post_grad_node, out_);
      out_.Append("</code>");
      std::string_view separator = " \u2190 ";
      FOR_EACH_ROW(
          const PreGradNode& origin,
          KeptQuery<PreGradNode>(context_.database, {.graph_id = kernel.graph_id,
                                                     .post_grad_node = node.post_grad_node})) {
        out_.Append(separator);
        AppendHtmlText(origin.pre_grad_node, out_);
        separator = ", ";
      }
      out_.Append("</div>");
    }
    return {};
  }

  const ReportContext& context_;
  FileWriter out_;
};

}  // namespace

Result<void> WriteProvenancePages(const ReportContext& context, const TreePlan& plan) {
  ProvenanceWriter writer(context);
  for (std::size_t i = 0; i < plan.directories.size(); ++i) {
    const std::string& directory = plan.directories[i];
    if (directory == "dump_file" || directory == "payloads") continue;
    RETURN_IF_ERROR(writer.WritePage(directory, plan.compiles[i]));
  }
  return {};
}

}  // namespace tlparse
