#include "torch/package_code.h"

#include <c10/core/ScalarType.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <exception>
#include <map>
#include <string>
#include <utility>

#include "torch/dtype_name.h"

namespace libtrace {
namespace {

using Sizes = std::vector<int64_t>;
constexpr std::string_view kWordCharacters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

std::string_view Trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") + 1 - first);
}

// The rest of `text` behind `mark`; empty if it is not there.
std::string_view After(std::string_view text, std::string_view mark) {
  const size_t at = text.find(mark);
  return at == std::string_view::npos ? std::string_view() : text.substr(at + mark.size());
}

// The word at the beginning or the end of `text`.
std::string_view FirstWord(std::string_view text) {
  return text.substr(0, std::min(text.find_first_not_of(kWordCharacters), text.size()));
}
std::string_view LastWord(std::string_view text) {
  return text.substr(text.find_last_not_of(kWordCharacters) + 1);
}

// `text` begins behind an opening bracket: what stands between the commas up to the closing one.
std::vector<std::string_view> Arguments(std::string_view text) {
  std::vector<std::string_view> arguments;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(' || c == '{' || c == '[') ++depth;
    const bool is_closing = c == ')' || c == '}' || c == ']';
    if (depth == 0 && (is_closing || c == ',')) {
      const std::string_view one = Trim(text.substr(begin, i - begin));
      if (!one.empty()) arguments.push_back(one);
      begin = i + 1;
      if (is_closing) return arguments;
    }
    if (is_closing) --depth;
  }
  return {};  // it is not closed
}

// `4L, 32L}`; empty: not all are numbers.
std::optional<Sizes> Numbers(std::string_view text) {
  if (text.find('}') == std::string_view::npos) return {};
  Sizes sizes;
  for (std::string_view one : Arguments(text)) {
    if (one.ends_with('L')) one.remove_suffix(1);
    int64_t& size = sizes.emplace_back();
    const auto [end, error] = std::from_chars(one.data(), one.data() + one.size(), size);
    if (error != std::errc() || end != one.data() + one.size() || size < 0) return {};
  }
  return sizes;
}

double ElementsOf(const TensorMeta& meta) {
  double count = 1;
  for (const int64_t size : meta.shape) count *= static_cast<double>(size);
  return count;
}

// Reads the text line by line, with what was said so far of each variable.
class CodeReader {
 public:
  CodeReader(std::string_view code, const std::vector<PackageKernel>& kernels)
      : nodes_of_(kernels) {
    ReadDeclarations(code);
    while (!code.empty()) {
      const size_t end = std::min(code.find('\n'), code.size());
      ReadLine(Trim(code.substr(0, end)));
      code.remove_prefix(std::min(end + 1, code.size()));
    }
  }

  CodeCalls Take() { return {std::move(calls_), is_straight_}; }

 private:
  // `extern "C"  void  cpp_fused_add_0(const float* in_ptr0,\n float* out_ptr0);`
  void ReadDeclarations(std::string_view code) {
    constexpr std::string_view kMark = "extern \"C\"";
    for (code = After(code, kMark); !code.empty(); code = After(code, kMark)) {
      const size_t open = code.find('(');
      if (open == std::string_view::npos) return;
      const std::string_view name = LastWord(Trim(code.substr(0, open)));
      if (name.substr(0, 4) != "cpp_") continue;
      std::vector<std::string>& parameters = parameters_[std::string(name)];
      parameters.clear();
      for (const std::string_view parameter : Arguments(code.substr(open + 1)))
        parameters.emplace_back(LastWord(parameter));
    }
  }

  void ReadLine(std::string_view line) {
    if (line.find("AOTInductorModel::run_impl(") != std::string_view::npos) is_in_run_ = true;
    if (line == "} // AOTInductorModel::run_impl") is_in_run_ = false;
    const bool is_block = line.ends_with('{');
    if (is_in_run_ && is_block &&
        (line.starts_with("if (") || line.starts_with("while") || line.starts_with("for (")))
      is_straight_ = false;
    if (const auto list = After(line, "[] = {"); !list.empty()) {
      arrays_[std::string(LastWord(line.substr(0, line.find("[] = {"))))] = Numbers(list);
    } else if (const auto made = After(line, "aoti_torch_empty_strided("); !made.empty()) {
      ReadBuffer(Arguments(made));
    } else if (line.substr(0, 5) == "auto " && line.find(" = ") != std::string_view::npos) {
      ReadAlias(FirstWord(line.substr(5)), After(line, " = "));
    } else if (line.substr(0, 16) == "constants_info_[") {
      ReadConstant(After(line, "]."));
    } else if (const auto asserted = After(line, "assert_size_stride("); !asserted.empty()) {
      ReadSizes(Arguments(asserted));
    } else {
      ReadCall(line);
    }
  }

  // The sizes under the name `array`; none are needed for a tensor without dimensions.
  std::optional<Sizes> SizesOf(std::string_view count, std::string_view array) const {
    if (count == "0") return Sizes();
    const auto known = arrays_.find(array);
    return known == arrays_.end() ? std::nullopt : known->second;
  }

  void Set(std::string_view name, const std::optional<Sizes>& shape,
           const std::optional<Sizes>& stride, const TensorMeta& like) {
    tensors_.erase(std::string(name));  // a name that is used again is another tensor
    if (!shape || !stride) return;
    tensors_[std::string(name)] = {*shape, *stride, like.dtype, like.device};
  }

  // number of dimensions, sizes, strides, dtype, kind of device, its index, the address of the handle
  void ReadBuffer(const std::vector<std::string_view>& arguments) {
    if (arguments.size() < 7) return;
    std::string_view handle = LastWord(arguments[6]);
    if (!handle.ends_with("_handle")) return;
    handle.remove_suffix(7);
    TensorMeta like;
    like.dtype = After(arguments[3], "_dtype_");
    like.device = After(arguments[4], "_device_type_");
    Set(handle, SizesOf(arguments[0], arguments[1]), SizesOf(arguments[0], arguments[2]), like);
  }

  // `std::move(buf0)`, or another view of a buffer: the buffer, dimensions, sizes, strides, offset
  void ReadAlias(std::string_view name, std::string_view value) {
    const std::string_view moved = After(value, "std::move(");
    const auto view = Arguments(After(value, "reinterpret_tensor_wrapper("));
    const std::string_view of = view.size() < 4 ? FirstWord(moved) : view[0];
    const auto known = tensors_.find(of);
    if (known == tensors_.end()) {
      tensors_.erase(std::string(name));
      return;
    }
    const TensorMeta like = known->second;
    if (view.size() < 4) {
      Set(name, like.shape, like.stride, like);
    } else {
      Set(name, SizesOf(view[1], view[2]), SizesOf(view[1], view[3]), like);
    }
  }

  // `name = "weight";`, then a line for each of its properties, strides last
  void ReadConstant(std::string_view property) {
    const std::string_view value = After(property, " = ");
    if (property.substr(0, 7) == "name = ") {
      constant_ = {};
      constant_name_ = FirstWord(value.substr(std::min<size_t>(value.size(), 1)));
      constant_.device = "cpu";
    } else if (property.substr(0, 8) == "dtype = ") {
      constant_.dtype = FirstWord(After(value, "_dtype_"));
    } else if (property.substr(0, 14) == "device_type = ") {
      constant_.device = FirstWord(After(value, "_device_type_"));
    } else if (property.substr(0, 9) == "shape = {") {
      constant_shape_ = Numbers(value.substr(1));
    } else if (property.substr(0, 10) == "stride = {") {
      Set(constant_name_, constant_shape_, Numbers(value.substr(1)), constant_);
    }
  }

  // an input or what an op made, its sizes, its strides. What an input holds is known where it is
  // used.
  void ReadSizes(const std::vector<std::string_view>& arguments) {
    if (arguments.size() < 3 || arguments[1].front() != '{' || arguments[2].front() != '{') return;
    TensorMeta like;
    like.device = "cpu";
    if (const auto known = tensors_.find(arguments[0]); known != tensors_.end())
      like = known->second;
    Set(arguments[0], Numbers(arguments[1].substr(1)), Numbers(arguments[2].substr(1)), like);
  }

  // `cpp_fused_add_0((const float*)(arg0_1.data_ptr()), (float*)(buf0.data_ptr()));`
  void ReadCall(std::string_view line) {
    const std::string name(FirstWord(line));
    const auto declared = parameters_.find(name);
    if (declared == parameters_.end() || !line.ends_with(");")) return;
    const auto arguments = Arguments(line.substr(std::min(name.size() + 1, line.size())));
    FusedOp& call = calls_[name].emplace_back();
    is_straight_ &= is_in_run_;  // a call in another function: how often that runs is not known
    if (arguments.size() != declared->second.size()) return;
    auto fused = FusedOf(declared->second, arguments);
    const auto flops = FlopsOf(name);
    if (!fused || !flops) return;
    fused->cost.flops = *flops;
    call = std::move(*fused);
  }

  std::optional<FusedOp> FusedOf(const std::vector<std::string>& parameters,
                                 const std::vector<std::string_view>& arguments) {
    FusedOp fused;
    largest_ = 0;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const std::string_view argument = arguments[i];
      const size_t end = argument.find(".data_ptr()");
      if (end == std::string_view::npos) {
        if (parameters[i].find("ptr") != std::string::npos) return {};
        continue;  // a size
      }
      const auto known = tensors_.find(LastWord(argument.substr(0, end)));
      if (known == tensors_.end()) return {};
      TensorMeta meta = known->second;
      if (!meta.dtype) meta.dtype = DtypeOfPointer(argument);
      const auto item_size = SizeOfDtype(meta.dtype.value_or(""));
      if (!item_size) return {};
      const double bytes = ElementsOf(meta) * static_cast<double>(*item_size);
      largest_ = std::max(largest_, ElementsOf(meta));
      if (parameters[i].rfind("in_", 0) == 0) fused.cost.size_bytes += bytes;  // in_out_ptr0 too
      if (parameters[i].find("out_ptr") == std::string::npos) continue;
      fused.cost.size_bytes += bytes;
      fused.outputs.push_back(std::move(meta));
    }
    if (fused.outputs.empty()) return {};
    return fused;
  }

  // `(const float*)(…`
  static std::optional<std::string> DtypeOfPointer(std::string_view argument) {
    static const std::map<std::string_view, const char*> kTypes = {
        {"float", "float32"}, {"double", "float64"},    {"Half", "float16"},
        {"half", "float16"},  {"bfloat16", "bfloat16"}, {"BFloat16", "bfloat16"},
        {"int64_t", "int64"}, {"int32_t", "int32"},     {"int16_t", "int16"},
        {"int8_t", "int8"},   {"uint8_t", "uint8"},     {"bool", "bool"}};
    const auto type = kTypes.find(LastWord(argument.substr(0, argument.find('*'))));
    return type == kTypes.end() ? std::nullopt : std::optional<std::string>(type->second);
  }

  // Of the nodes that became the kernel: `relu`, `add_1`. Empty: not known.
  std::optional<double> FlopsOf(const std::string& kernel) const {
    if (IsProduct(kernel)) return {};
    double flops = 0;
    const auto count = static_cast<int64_t>(largest_);
    const OpTensor output{{&count, 1}, 0};
    const auto one = std::find_if(nodes_of_.begin(), nodes_of_.end(), [&](const PackageKernel& k) {
      return k.name.substr(0, k.name.find(':')) == kernel;
    });
    if (one == nodes_of_.end()) return flops;
    for (const std::string& node : one->post_grad_nodes) {
      if (IsProduct(node)) return {};
      const OpCost cost = CostOf(node, {}, {&output, 1}, false);
      if (!cost.is_known) return {};
      flops += cost.flops;
    }
    return flops;
  }

  const std::vector<PackageKernel>& nodes_of_;
  std::map<std::string, std::vector<std::string>> parameters_;  // of each kernel
  std::map<std::string, std::optional<Sizes>, std::less<>> arrays_;
  std::map<std::string, TensorMeta, std::less<>> tensors_;
  std::string constant_name_;
  TensorMeta constant_;
  std::optional<Sizes> constant_shape_;
  double largest_ = 0;  // elements, of the last call
  FusedOps calls_;
  bool is_in_run_ = false, is_straight_ = true;
};

}  // namespace

CodeCalls ReadCodeCalls(std::string_view code, const std::vector<PackageKernel>& kernels) {
  return CodeReader(code, kernels).Take();
}

std::optional<uint64_t> SizeOfDtype(std::string_view name) {
  for (int i = 0; i < static_cast<int>(c10::ScalarType::Undefined); ++i) {
    const auto type = static_cast<c10::ScalarType>(i);
    if (DtypeName(type) != name) continue;
    try {
      return c10::elementSize(type);
    } catch (const std::exception&) {  // several elements in a byte
      return {};
    }
  }
  return {};
}

bool IsProduct(std::string_view op) {
  for (const std::string_view part : {"mm", "mv", "linear", "conv", "attention", "dot"}) {
    if (op.find(part) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace libtrace
