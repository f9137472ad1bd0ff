#include "libtrace/scope.h"

#include <utility>

namespace libtrace {
namespace {

// A pointer to the innermost scope's context: constant initialisation, no destructor, so that
// records emitted while a thread ends find it usable.
thread_local const Context* t_context = nullptr;

std::atomic<uint32_t> g_next_frame_id{0};
std::atomic<uint32_t> g_next_compiled_autograd_id{0};

Context ContextOf(const CompileId& id) {
  Context context;
  context.compile_id = id;
  if (!id.compiled_autograd_id) {
    context.compile_id.compiled_autograd_id = CurrentContext().compile_id.compiled_autograd_id;
  }
  return context;
}

Context WithSubgraph(std::string_view name) {
  Context context;
  context.compile_id = CurrentContext().compile_id;
  context.attempt = CurrentContext().attempt;
  try {
    context.subgraph_name = name;
  } catch (...) {  // no memory: records then lack the name
  }
  return context;
}

}  // namespace

uint32_t Frame::NextId() noexcept { return g_next_frame_id.fetch_add(1); }
uint32_t NextCompiledAutogradId() noexcept { return g_next_compiled_autograd_id.fetch_add(1); }

const Context& CurrentContext() noexcept {
  if (t_context != nullptr) return *t_context;
  static const Context* const none =
      new Context;  // never destroyed: records are emitted during exit
  return *none;
}

ContextScope::ContextScope(Context context) noexcept
    : context_(std::move(context)), previous_(t_context) {
  t_context = &context_;
}

ContextScope::~ContextScope() { t_context = previous_; }

CompileScope::CompileScope(const CompileId& id) noexcept : ContextScope(ContextOf(id)) {}

SubgraphScope::SubgraphScope(std::string_view subgraph_name) noexcept
    : ContextScope(WithSubgraph(subgraph_name)) {}

}  // namespace libtrace
