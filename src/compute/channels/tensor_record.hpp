// Decodes and encodes the protobuf message Record of application/x-recordio-protobuf, the format of
// tensors for SageMaker's algorithms.
//
//   Record  { map<string, Value> features = 1; map<string, Value> label = 2; .. }
//   Value   { Float32Tensor float32_tensor = 2; Float64Tensor float64_tensor = 3;
//             Int32Tensor int32_tensor = 7; Bytes bytes = 9; }
//   *Tensor { repeated values = 1; repeated uint64 keys = 2; repeated uint64 shape = 3; }
//
// The features are the tensor named "values" in `features`. The label is the first value of the
// tensor "values" in `label`. A tensor with keys is sparse: its values belong to the keys, and
// other values are 0.
//
// Threads: pure functions. Errors: invalid, naming the field; corrupt, if the bytes are
// not a protobuf message. Source: github.com/aws/sagemaker-python-sdk, record.proto.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace trainyard::channels {

// If `keys` is not empty, values[i] belongs to keys[i], and other values are 0.
struct Tensor {
  std::vector<double> values;
  std::vector<uint64_t> keys, shape;
};
// The features and the label of a message; keys and values are not checked.
struct RawRecord {
  Tensor features;
  std::optional<double> label;
};
Result<RawRecord> decode_raw_record(std::string_view message);

struct TensorRecord {
  std::vector<float> features;
  std::optional<double> label;
};

// Decodes into `record`, and reuses its memory. Errors: also invalid, unless the features are
// `dimensions` finite numbers.
Result<void> decode_record(std::string_view message, size_t dimensions, TensorRecord& record);

// Encodes a record with one label `name`, a Float32Tensor of one value.
std::string encode_label(std::string_view name, float value);
// Encodes a dense record with its features, and with the label if the record has one.
std::string encode_record(const TensorRecord& record);

}  // namespace trainyard::channels
