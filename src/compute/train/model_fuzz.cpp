// Decodes any bytes as the files of a model: the description up to the first NUL, then the weights.
// decoder: src/compute/train/model.cpp
#include <algorithm>

#include "base/check.hpp"
#include "train/model.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(bytes.find('\0'), bytes.size());
  const auto model =
      train::decode_model(bytes.substr(0, end), bytes.substr(std::min(end + 1, size)));
  if (model) {
    CHECK(model->parameters.size() == model->shape.parameters(),
          "a decoded model has all its parameters");
    const auto again =
        train::decode_model(train::encode_description(*model), train::encode_weights(*model));
    CHECK(again && again->shape == model->shape,
          "a decoded model can be encoded and decoded again");
  }
  return 0;
}
