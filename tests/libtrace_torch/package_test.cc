#include "libtrace/torch/package.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "core/json_reader.h"
#include "tests/catch2.h"
#include "torch/elf_needs.h"

namespace {

template <class Number>
void Append(std::string& out, Number value) {
  for (size_t i = 0; i < sizeof(Number); ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
}

// A zip archive whose members are stored, as PyTorch writes packages.
std::string Zip(const std::vector<std::pair<std::string, std::string>>& members) {
  std::string file, directory;
  for (const auto& [name, content] : members) {
    std::string common;
    for (const int field : {20, 0, 0, 0, 0})
      Append(common, static_cast<uint16_t>(field));  // stored
    Append(common, uint32_t{0x12345678});
    Append(common, static_cast<uint32_t>(content.size()));
    Append(common, static_cast<uint32_t>(content.size()));
    Append(common, static_cast<uint16_t>(name.size()));
    Append(common, uint16_t{0});
    directory += "PK\1\2";
    Append(directory, uint16_t{20});
    directory += common + std::string(10, '\0');
    Append(directory, static_cast<uint32_t>(file.size()));
    directory += name;
    file += "PK\3\4" + common + name + content;
  }
  const auto offset = static_cast<uint32_t>(file.size());
  file += directory + "PK\5\6" + std::string(4, '\0');
  Append(file, static_cast<uint16_t>(members.size()));
  Append(file, static_cast<uint16_t>(members.size()));
  Append(file, static_cast<uint32_t>(directory.size()));
  Append(file, offset);
  return file + std::string(2, '\0');
}

class File {
 public:
  explicit File(const std::string& content)
      : path_((std::filesystem::temp_directory_path() /
               ("package_test." + std::to_string(getpid()) + ".pt2"))
                  .string()) {
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~File() { std::filesystem::remove(path_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

const std::string kModel = "model/data/aotinductor/model/";
const std::vector<std::pair<std::string, std::string>> kPackage = {
    {"model/archive_format", "pt2"},
    {kModel + "c.wrapper_metadata.json", R"({"AOTI_DEVICE_KEY": "cpu"})"},
    {kModel + "k.kernel_metadata.json", R"({"AOTI_DEVICE_KEY": "cpu"})"},
    {kModel + "kernel_information.json",
     R"({"cpp_fused_add_relu_0:1": {"stack_traces": ["File \"m.py\", line 3, in f\n"],)"
     R"( "post_grad_nodes": ["relu", "add"], "pre_grad_nodes": ["relu"], "later": [1, {"a": null}]}})"}};

std::string ThisProgram() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_CASE("package: ops that the code calls by index, what it was built for and needs") {
  auto members = kPackage;
  members.emplace_back(
      kModel + "extern.json",
      R"({"nodes": [{"name": "buf3", "node": {"target": "torch.ops.acme.twice.default",)"
      R"( "inputs": [{"name": "x"}]}}, {"name": "buf4", "node": {"target": "torch.ops.acme.f"}}]})");
  members.emplace_back(kModel + "other.json", R"({"nodes": [{"a": 1}]})");
  members.emplace_back(kModel + "code.so", ThisProgram());
  members.emplace_back("model/data/aotinductor/second/CMakeLists.txt", "project(second)");
  members.emplace_back("model/data/aotinductor/second/a.cpp", "int a;");
  const File file(Zip(members));
  libtrace::Package package;
  REQUIRE(libtrace::DescribePackage(file.path(), package).message() == "");
  REQUIRE(package.extern_kernels.size() == 2);
  CHECK(package.extern_kernels[1].index == 1);
  CHECK(package.extern_kernels[1].name == "buf4");
  CHECK(package.extern_kernels[0].op == "torch.ops.acme.twice.default");
  CHECK(package.extern_kernels[0].model == "model");
  REQUIRE(package.code.size() == 2);
  CHECK(package.code[0].model == "model");
  CHECK(package.code[0].linkage == "shared");
  CHECK_FALSE(package.code[0].is_cpp_only);
  CHECK(package.code[0].machine);
  const auto& libraries = package.code[0].libraries;
  CHECK(std::find(libraries.begin(), libraries.end(), "libc.so.6") != libraries.end());
  CHECK(package.code[1].linkage == "sources");
  CHECK(package.code[1].is_cpp_only);
  CHECK_FALSE(package.code[1].machine);
}

// aoti_custom_ops.py compiled it with Debian sid's PyTorch 2.14.1; of its shared object the first 64
// bytes are left. The op is called once before the condition and once in each branch.
TEST_CASE("package: a real one whose branches call ops of others") {
  libtrace::Package package;
  REQUIRE(libtrace::DescribePackage(BRANCHES_PACKAGE, package).message() == "");
  CHECK(package.kind == "aotinductor");
  std::vector<std::string> names;
  for (const libtrace::PackageExternKernel& kernel : package.extern_kernels) {
    CHECK(kernel.index == names.size());
    CHECK(kernel.op == "acme::twice");
    names.push_back(kernel.name);
  }
  CHECK(names == std::vector<std::string>{"buf1", "false_graph_0_buf0", "true_graph_0_buf0"});
  size_t call_count = 0;
  for (const libtrace::PackageKernel& kernel : package.kernels) {
    if (kernel.name.find("aoti_torch_cpu_twice") == std::string::npos) continue;
    ++call_count;
    CHECK(kernel.post_grad_nodes == std::vector<std::string>{"twice"});
    const bool is_before = call_count == 1;
    REQUIRE(kernel.stack_traces.size() == 1);
    CHECK(kernel.stack_traces[0].find(is_before ? "line 22, in forward" : "line 23, in forward") !=
          std::string::npos);
  }
  CHECK(call_count == 3);
  REQUIRE(package.code.size() == 1);
  CHECK(package.code[0].linkage == "shared");
}

// What torch.save writes of one tensor, as far as it matters here.
std::string Saved(const std::string& storage_class, const std::string& device, size_t size_bytes) {
  std::string pickle =
      "\x80\x02"
      "ctorch._utils\n_rebuild_tensor_v2\n((X\x07" +
      std::string(3, '\0') + "storagectorch\n" + storage_class + "\nX\x01" + std::string(3, '\0') +
      "0X";
  pickle += static_cast<char>(device.size()) + std::string(3, '\0') + device + "K\x04tQ.";
  return Zip({{"archive/data.pkl", pickle},
              {"archive/data/0", std::string(size_bytes, 'w')},
              {"archive/version", "3"}});
}

TEST_CASE("package: weights of an exported program, whose list has another place and shape") {
  const std::string float_meta =
      R"("tensor_meta": {"dtype": 7, "sizes": [{"as_int": 2}, {"as_int": 3}], "requires_grad": true,)"
      R"( "device": {"type": "cuda", "index": 1}, "strides": [{"as_int": 3}, {"as_int": 1}],)"
      R"( "storage_offset": {"as_int": 0}, "layout": 7}})";
  const std::string config =
      R"({"config": {"a": {"path_name": "weight_0", "is_param": true, "use_pickle": false, )" +
      float_meta + R"(, "b": {"path_name": "weight_0", "is_param": true, "use_pickle": false, )" +
      float_meta +
      R"(, "c": {"path_name": "weight_1", "is_param": false, "use_pickle": true, "tensor_meta": null}}})";
  const File file(Zip({{"m/archive_format", "pt2"},
                       {"m/models/m.json", "{}"},
                       {"m/data/weights/m_weights_config.json", config},
                       {"m/data/weights/weight_0", std::string(32, 'w')},
                       {"m/data/weights/weight_1", Saved("HalfStorage", "cpu", 8)}}));
  libtrace::Package package;
  REQUIRE(libtrace::DescribePackage(file.path(), package).message() == "");
  CHECK(package.kind == "exported_program");
  CHECK(package.unread_files.empty());
  REQUIRE(package.weights.size() == 3);
  CHECK(package.weights[0].name == "a");
  CHECK(package.weights[0].shape == std::vector<int64_t>{2, 3});
  CHECK(package.weights[0].dtype == "float32");
  CHECK(package.weights[0].device == "cuda:1");
  CHECK(package.weights[0].size_bytes == 24);
  CHECK(package.weights[0].storage_size_bytes == 32);
  CHECK(package.weights[1].storage_id == package.weights[0].storage_id);
  CHECK(package.weights[2].dtype == "float16");
  CHECK(package.weights[2].storage_size_bytes == 8);
  CHECK(libtrace::SizeOfWeights(package.weights) == 40);
}

TEST_CASE("package: what is not read is said") {
  auto members = kPackage;
  members.emplace_back(kModel + "weights_config.json", R"({"a": {"of another": "shape"}})");
  members.emplace_back("model/data/weights/model_weights_config.json",
                       R"({"config": {"a": {"path_name": "weight_0", "use_pickle": true}}})");
  members.emplace_back("model/data/weights/weight_0", "no archive");
  std::string bytes = Zip(members);
  // As if deflated: the method, in the directory.
  const size_t directory = bytes.find("PK\1\2");
  const size_t entry = bytes.find("kernel_information.json", directory) - (kModel.size() + 46);
  bytes[entry + 10] = 8;
  const File file(bytes);
  libtrace::Package package;
  REQUIRE(libtrace::DescribePackage(file.path(), package).message() == "");
  CHECK(package.kernels.empty());
  CHECK(package.unread_files == std::vector<std::string>{kModel + "kernel_information.json",
                                                         kModel + "weights_config.json",
                                                         "model/data/weights/weight_0"});
}

TEST_CASE("package: weights that are files of it, each storage once") {
  auto members = kPackage;
  members.emplace_back(kModel + "weights_config.json",
                       R"({"a": ["weight_0", [2, 3], [3, 1], 0], "b": ["weight_0", [6], [1], 0],)"
                       R"( "c": ["weight_1", [], [], 0], "d": ["weight_9", [4], [1], 0]})");
  members.emplace_back("model/data/weights/weight_0", Saved("FloatStorage", "cpu", 32));
  members.emplace_back("model/data/weights/weight_1", Saved("BFloat16Storage", "cuda:1", 2));
  const auto describe = [](const auto& all) {
    const File file(Zip(all));
    libtrace::Package package;
    REQUIRE(libtrace::DescribePackage(file.path(), package).message() == "");
    return package.weights;
  };
  const auto weights = describe(members);
  REQUIRE(weights.size() == 4);
  CHECK(weights[0].name == "a");
  CHECK(weights[0].shape == std::vector<int64_t>{2, 3});
  CHECK(weights[0].dtype == "float32");
  CHECK(weights[0].device == "cpu");
  CHECK(weights[0].size_bytes == 24);
  CHECK(weights[0].storage_size_bytes == 32);
  CHECK(weights[1].storage_id == weights[0].storage_id);
  CHECK(weights[2].storage_id == 2);
  CHECK(weights[2].dtype == "bfloat16");
  CHECK(weights[2].device == "cuda:1");
  CHECK(weights[2].size_bytes == 2);
  CHECK(weights[3].size_bytes == 0);  // its file is not there
  CHECK(libtrace::SizeOfWeights(weights) == 34);

  members.emplace_back("model/data/aotinductor/second/weights_config.json",
                       R"({"a": ["weight_1", [], [], 0]})");
  const auto of_two = describe(members);
  REQUIRE(of_two.size() == 5);
  CHECK(of_two[0].name == "model/a");
  CHECK(of_two[4].name == "second/a");
  CHECK(of_two[4].storage_id == 2);
}

TEST_CASE("package: a damaged list or file of weights tells nothing and does no harm") {
  const std::string config = R"({"a": ["weight_0", [2, 3], [3, 1], 0]})";
  const std::string saved = Saved("FloatStorage", "cpu", 24);
  const auto count = [](const std::string& list, const std::string& content) {
    const File file(
        Zip({{kModel + "weights_config.json", list}, {"data/weights/weight_0", content}}));
    libtrace::Package package;
    CHECK(libtrace::DescribePackage(file.path(), package).ok());
    return package.weights.size();
  };
  for (size_t size = 0; size < saved.size(); ++size)
    CHECK(count(config, saved.substr(0, size)) == 1);
  for (size_t size = 0; size < config.size(); ++size)
    CHECK(count(config.substr(0, size), saved) == 0);
  for (const char* other :
       {"[]", R"({"a": {"path_name": "weight_0"}})", R"({"a": ["weight_0", [1.5]]})"})
    CHECK(count(other, saved) == 0);
}

TEST_CASE("package: a damaged shared object tells nothing and does no harm") {
  const std::string whole = ThisProgram();
  for (const size_t size : {size_t{0}, size_t{10}, size_t{64}, size_t{600}, whole.size() / 2}) {
    const std::string part = whole.substr(0, size);
    const auto needs = libtrace::ReadElfNeeds(part);
    CHECK((!needs || needs->libraries.empty() || size == whole.size() / 2));
  }
  std::string wild = whole;
  for (size_t i = 64; i < 1200 && i < wild.size(); i += 3) wild[i] = '\xff';
  (void)libtrace::ReadElfNeeds(wild);
}

TEST_CASE("package: files, kernels with nodes and stacks, metadata") {
  const File file(Zip(kPackage));
  libtrace::Package package;
  REQUIRE(libtrace::DescribePackage(file.path(), package).message() == "");
  CHECK(package.kind == "aotinductor");
  CHECK(package.size_bytes == std::filesystem::file_size(file.path()));
  REQUIRE(package.files.size() == 4);
  CHECK(package.files[0].name == "model/archive_format");
  CHECK(package.files[0].size_bytes == 3);
  CHECK(package.files[0].crc32 == 0x12345678);
  CHECK(package.metadata ==
        std::vector<std::pair<std::string, std::string>>{{"AOTI_DEVICE_KEY", "cpu"}});
  REQUIRE(package.kernels.size() == 1);
  CHECK(package.kernels[0].name == "cpp_fused_add_relu_0:1");
  CHECK(package.kernels[0].post_grad_nodes == std::vector<std::string>{"relu", "add"});
  CHECK(package.kernels[0].pre_grad_nodes == std::vector<std::string>{"relu"});
  CHECK(package.kernels[0].stack_traces ==
        std::vector<std::string>{"File \"m.py\", line 3, in f\n"});
}

TEST_CASE("package: cut off anywhere, it is an error") {
  const std::string whole = Zip(kPackage);
  for (size_t size = 0; size < whole.size(); ++size) {
    const File file(whole.substr(0, size));
    libtrace::Package package;
    CHECK_FALSE(libtrace::DescribePackage(file.path(), package).ok());
  }
}

TEST_CASE("package: any byte may be wrong") {
  const std::string whole = Zip(kPackage);
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(0xff);
    const File file(damaged);
    libtrace::Package package;
    static_cast<void>(libtrace::DescribePackage(file.path(), package));
    CHECK(package.files.size() <= 4);
  }
}

TEST_CASE("package: no such file; not an archive") {
  libtrace::Package package;
  CHECK(libtrace::DescribePackage("/no/such/file.pt2", package).message() ==
        "cannot read /no/such/file.pt2");
  const File file("just text");
  CHECK(libtrace::DescribePackage(file.path(), package)
            .message()
            .ends_with("is no zip archive, or cut off"));
}

TEST_CASE("package: JSON escapes, depth, damage") {
  const auto read = [](std::string_view text) {
    std::string value;
    return libtrace::JsonReader(text).String(value) ? value : std::string("error");
  };
  CHECK(read(R"( "a\"\\\/\n\u0041\u00e9\u20ac\ud83d\ude00")") == "a\"\\/\nA\u00e9\u20ac\U0001F600");
  CHECK(read(R"("\ud83d!")") == "\ufffd!");
  for (const char* text : {"", "x", "\"", "\"\\", "\"\\u12\"", "\"\\x\""})
    CHECK(read(text) == "error");
  CHECK(libtrace::JsonReader(R"({"a": [1, -2.5e3, true, null, "x", {}], "b": []})").Skip());
  for (const char* text : {"", "[", "[1", "{\"a\"", "{\"a\":}", "[,]"})
    CHECK_FALSE(libtrace::JsonReader(text).Skip());
  CHECK_FALSE(libtrace::JsonReader(std::string(100'000, '[')).Skip());
}

}  // namespace
