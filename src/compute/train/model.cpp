#include "train/model.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/check.hpp"
#include "base/complete_record.hpp"
#include "base/json.hpp"

namespace trainyard::train {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

constexpr std::string_view kFormat = "trainyard-mlp";
constexpr int64_t kVersion = 1;
constexpr int64_t kDimensionMax = 1 << 20;  // of inputs, hidden, classes: products do not overflow

struct Description {
  std::string format{kFormat};
  int64_t version = kVersion;
  int64_t inputs = 0, hidden = 0, classes = 0;
  double input_scale = 0;
  int64_t image_width = 0;
  std::string weights{kWeightsFile};
};
constexpr auto kDescription =
    complete(json_record<Description>("model", [](auto& side, auto& description) {
      side("format", description.format);
      side("version", description.version);
      side("inputs", description.inputs);
      side("hidden", description.hidden);
      side("classes", description.classes);
      side("input_scale", description.input_scale);
      side("image_width", description.image_width);
      side("weights", description.weights);
    }));

Result<size_t> dimension(std::string_view name, int64_t value) {
  if (value < 1 || value > kDimensionMax)
    return corrupt("invalid " + std::string(name) + " " + std::to_string(value) +
                   ": it must be 1 to " + std::to_string(kDimensionMax));
  return size_t(value);
}

Result<std::vector<float>> decode_weights(const Shape& shape, std::string_view bytes) {
  uint64_t header_bytes = 0;
  if (bytes.size() < sizeof header_bytes)
    return corrupt("truncated header: the file has " + std::to_string(bytes.size()) + " bytes");
  std::memcpy(&header_bytes, bytes.data(), sizeof header_bytes);
  bytes.remove_prefix(sizeof header_bytes);
  if (header_bytes > kHeaderBytesMax || header_bytes > bytes.size())
    return corrupt("invalid header length " + std::to_string(header_bytes));
  const Json header = TRY(parse_json(bytes.substr(0, header_bytes)));
  const std::string_view numbers = bytes.substr(header_bytes);
  if (numbers.size() != shape.parameters() * sizeof(float)) {
    return corrupt(std::to_string(numbers.size()) + " bytes of weights, but the shape needs " +
                   std::to_string(shape.parameters() * sizeof(float)));
  }

  std::vector<float> parameters(shape.parameters());
  for (const Tensor& tensor : tensors(shape)) {
    if (!header.is_object() || !header.contains(tensor.name))
      return corrupt("tensor " + tensor.name + " not found");
    const Json& entry = header[tensor.name];
    const Json expected_shape = tensor.shape;
    if (TRY(string_at(entry, "dtype")) != "F32" || entry.value("shape", Json()) != expected_shape) {
      return corrupt("tensor " + tensor.name + " must be F32 of shape " + expected_shape.dump());
    }
    const Json offsets = entry.value("data_offsets", Json());
    if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
        !offsets[1].is_number_unsigned()) {
      return corrupt("tensor " + tensor.name + ": invalid data_offsets");
    }
    const auto begin = offsets[0].get<uint64_t>();
    const auto end = offsets[1].get<uint64_t>();
    if (begin > end || end > numbers.size() || end - begin != tensor.size * sizeof(float)) {
      return corrupt("tensor " + tensor.name + ": data_offsets " + offsets.dump() +
                     " do not fit its shape or the file");
    }
    std::memcpy(&parameters[tensor.begin], &numbers[begin], end - begin);
  }
  return parameters;
}

}  // namespace

std::vector<Tensor> tensors(const Shape& shape) {
  return {
      {"hidden.weight",
       {shape.inputs, shape.hidden},
       shape.hidden_weight(),
       shape.inputs * shape.hidden},
      {"hidden.bias", {shape.hidden}, shape.hidden_bias(), shape.hidden},
      {"class.weight",
       {shape.hidden, shape.classes},
       shape.class_weight(),
       shape.hidden * shape.classes},
      {"class.bias", {shape.classes}, shape.class_bias(), shape.classes},
  };
}

std::string encode_weights(const Model& model) {
  CHECK(model.parameters.size() == model.shape.parameters(),
        "parameters must have the size of the shape");
  Json header = Json::object();
  for (const Tensor& tensor : tensors(model.shape)) {
    header[tensor.name] = {
        {"dtype", "F32"},
        {"shape", tensor.shape},
        {"data_offsets",
         {tensor.begin * sizeof(float), (tensor.begin + tensor.size) * sizeof(float)}}};
  }
  std::string text = dump(header);
  text.resize((text.size() + 7) / 8 * 8,
              ' ');  // aligns the numbers to 8 bytes, for readers that map the file
  const uint64_t length = text.size();
  std::string bytes(reinterpret_cast<const char*>(&length), sizeof length);
  bytes += text;
  bytes.append(reinterpret_cast<const char*>(model.parameters.data()),
               model.parameters.size() * sizeof(float));
  return bytes;
}

std::string encode_description(const Model& model) {
  Description description;
  description.inputs = int64_t(model.shape.inputs);
  description.hidden = int64_t(model.shape.hidden);
  description.classes = int64_t(model.shape.classes);
  description.input_scale = model.input_scale;
  description.image_width = int64_t(model.image_width);
  return dump(kDescription.write(description), 2) + "\n";
}

Result<Model> decode_model(std::string_view description_text, std::string_view weights) {
  const auto read = [&]() -> Result<Model> {
    const Description description = TRY(kDescription.read(TRY(parse_json(description_text))));
    if (description.format != kFormat)
      return corrupt("unknown format: expected " + std::string(kFormat));
    if (description.version != kVersion)
      return corrupt("unknown version " + std::to_string(description.version));
    Model model;
    const auto inputs = TRY(dimension("inputs", description.inputs));
    const auto hidden = TRY(dimension("hidden", description.hidden));
    const auto classes = TRY(dimension("classes", description.classes));
    model.shape = {inputs, hidden, classes};
    const double scale = description.input_scale;
    if (!(scale >= kInputScaleMin && scale <= kInputScaleMax)) {
      return corrupt("input_scale " + Json(scale).dump() + " must be within " +
                     Json(kInputScaleMin).dump() + " to " + Json(kInputScaleMax).dump());
    }
    model.input_scale = float(scale);
    const int64_t width = description.image_width;
    if (width < 0 || (width > 0 && model.shape.inputs % size_t(width) != 0)) {
      return corrupt("invalid image_width " + std::to_string(width) +
                     ": inputs must be a multiple of it");
    }
    model.image_width = size_t(width);
    return model;
  };
  Model model = TRY(read().in(kDescriptionFile));
  model.parameters = TRY(decode_weights(model.shape, weights).in(kWeightsFile));
  return model;
}

}  // namespace trainyard::train
