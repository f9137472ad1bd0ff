#include "libtrace/torch/run_digest.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <map>
#include <string>
#include <vector>

#include "tests/catch2.h"
#include "tests/libtrace/log_text.h"

namespace libtrace {
namespace {

// The payload of the one digest of these outputs; "" if there is none.
std::string DigestOf(const c10::IValue& outputs) {
  testing::MemoryTrace trace;
  RunDigest digest("forward", 3);
  AddOutputs(digest, outputs);
  digest.Emit();
  for (const testing::LoggedRecord& record : trace.records())
    if (record.IsArtifact("libtrace_run_digest")) return record.payload;
  return "";
}

TEST_CASE("run digest: equal outputs have equal hashes, whatever their strides") {
  const at::Tensor x = at::arange(6).reshape({2, 3});
  const std::string digest = DigestOf(x);
  CHECK(digest.find("\"name\": \"0\", \"text\": \"int64[2, 3]\"") != std::string::npos);
  CHECK(DigestOf(x.clone()) == digest);
  CHECK(DigestOf(x.t().contiguous().t()) == digest);
  CHECK(DigestOf(x.reshape({3, 2})) != digest);
  CHECK(DigestOf(x.add(1)) != digest);
  CHECK(DigestOf(at::zeros({2})) != DigestOf(at::zeros({2}).neg()));
}

TEST_CASE("run digest: outputs are named by their position") {
  const at::Tensor x = at::ones({2});
  const c10::List<at::Tensor> list({x, x.mul(2)});
  const std::string digest =
      DigestOf(c10::ivalue::Tuple::create({x, c10::IValue(7), c10::IValue(list)}));
  for (const char* name : {"\"0\"", "\"2.0\"", "\"2.1\""})
    CHECK(digest.find(std::string("\"name\": ") + name) != std::string::npos);
  CHECK(digest.find("\"name\": \"1\"") == std::string::npos);
}

TEST_CASE("run digest: what has no bytes to hash is left out; nothing when tracing is off") {
  CHECK(DigestOf(at::Tensor()) == "");
  CHECK(DigestOf(at::ones({2, 2}).to_sparse()) == "");
  RunDigest off("forward");
  AddOutputs(off, at::ones({2}));
  CHECK(off.empty());
}

}  // namespace
}  // namespace libtrace
