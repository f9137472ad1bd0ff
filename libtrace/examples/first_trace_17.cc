// A trace from C++17, which has no designated initialisers: a description is filled in by a
// function.
//
//   c++ -std=c++17 first_trace_17.cc $(pkg-config --cflags --libs torchtrace) -o first_trace
//   TORCH_TRACE=/tmp/trace ./first_trace && tlparse /tmp/trace
#include <libtrace/compile.h>

#include <vector>

int main() {
  libtrace::Frame frame;  // one per function or model that is compiled
  for (const int batch : {32, 64}) {
    libtrace::Compile compile(frame, [](libtrace::CompileDescription& description) {
      description.function = "forward";
      description.file = "model.cc";
      description.line = 12;
    });
    libtrace::TimedSpan pass("lower");
    pass.Arg("batch", batch);
    libtrace::EmitJsonArtifact("acme_plan", libtrace::JsonStyle::kOneLine,
                               [&](libtrace::JsonWriter& json) {
                                 json.BeginObject().Field("tiles", std::vector<int>{8, batch});
                                 json.EndObject();
                               });
  }
  return libtrace::GetStats().lost_record_count != 0;
}
