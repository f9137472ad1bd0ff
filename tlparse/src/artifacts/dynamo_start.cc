// dynamo_start: Dynamo begins to compile a frame (log_dynamo_start in
// torch/_dynamo/convert_frame.py). The last frame of its stack is made from the code object:
// function, file and first line of what is compiled.
#include "artifacts/common/json_members.h"
#include "artifacts/common/text/stack_pool.h"

namespace tlparse {
namespace {

class DynamoStart final : public Ingestor {
 public:
  void Prepare(TableSet&) override {}

  Result<void> Ingest(const Record& record, IngestContext& context) override {
    if (record.kind == "str" || record.compile == nullptr)
      return {};  // strings are read before any family is asked
    CompileState& compile = *record.compile;
    compile.has_start = true;
    ASSIGN_OR_RETURN(const simdjson::dom::object metadata, MetadataObject(context));
    const JsonMembers members(metadata, context, ImportCode::kBadMetadata);
    const std::optional<simdjson::dom::array> stack = members.Array("stack");
    if (!stack || stack->size() == 0) return {};
    std::optional<std::int64_t> unresolved;  // reported when the record's own stack was read
    ASSIGN_OR_RETURN(compile.stack_id, context.stacks().Stack(context.rows(), *record.process,
                                                              *members.Any("stack"), &unresolved));
    simdjson::dom::object frame;
    if (stack->at(stack->size() - 1).get(frame) == simdjson::SUCCESS)
      ReadFrame(frame, *record.process, compile);
    return {};
  }

 private:
  static void ReadFrame(const simdjson::dom::object& frame, const ProcessState& process,
                        CompileState& compile) {
    std::string_view function;
    std::int64_t number = 0;
    if (frame.at_key("name").get(function) == simdjson::SUCCESS) compile.function = function;
    if (frame.at_key("line").get(number) == simdjson::SUCCESS) compile.line = number;
    if (frame.at_key("filename").get(number) == simdjson::SUCCESS)
      compile.file = process.String(number).value_or("");
  }
};

}  // namespace

TLPARSE_ARTIFACT(dynamo_start, DynamoStart, OpensStretch(BeginsAgain("dynamo_start")),
                 StandsAlone("str"))

}  // namespace tlparse
