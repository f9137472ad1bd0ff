#include <ATen/ops/ones.h>
#include <libtrace/torch/torchscript.h>

int main() {
  torch::jit::Module module("Net");
  libtrace::DefineMethods(module, "def forward(self, x):\n    return torch.relu(x)\n", "net.py");
  libtrace::TorchScriptModel model(module, {.name = "net"});
  for (int i = 0; i < 2; ++i) model.Run({at::ones({2, 2})});
}
