// Decodes and encodes the protobuf message Record of application/x-recordio-protobuf, in which
// SageMaker's algorithms exchange tensors.
//
//   Record  { map<string, Value> features = 1; map<string, Value> label = 2; .. }
//   Value   { Float32Tensor float32_tensor = 2; Float64Tensor float64_tensor = 3;
//             Int32Tensor int32_tensor = 7; Bytes bytes = 9; }
//   *Tensor { repeated values = 1; repeated uint64 keys = 2; repeated uint64 shape = 3; }
//
// The features are those named "values", the label is the first value of the label "values". With
// keys a tensor is sparse: other values are 0.
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

// With keys, `values` belong to the keys, and other values are 0.
struct Tensor {
  std::vector<double> values;
  std::vector<uint64_t> keys, shape;
};
// The features and the label as they are in the message: keys and numbers are unchecked.
struct RawRecord {
  Tensor features;
  std::optional<double> label;
};
Result<RawRecord> decode_raw_record(std::string_view message);

struct TensorRecord {
  std::vector<float> features;
  std::optional<double> label;
};

// Overwrites `record`, whose memory is used again. Features that are not `dimensions` finite
// numbers are an error.
Result<void> decode_record(std::string_view message, size_t dimensions, TensorRecord& record);

// Encodes a record with the label `name`, a Float32Tensor of one value.
std::string encode_label(std::string_view name, float value);
// Encodes a dense record with features, and with a label if there is one.
std::string encode_record(const TensorRecord& record);

}  // namespace trainyard::channels
