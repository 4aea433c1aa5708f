#include "train/model.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "base/json.hpp"
#include "os/files.hpp"
#include "os/temporary_directory.hpp"
#include "train/evaluate.hpp"
#include "train/image.hpp"

namespace trainyard::train {
namespace {

Model small_model() {
  Model model;
  model.shape = {4, 3, 2};
  model.input_scale = 16;
  model.image_width = 2;
  model.parameters = initial_parameters(model.shape, 1);
  return model;
}

TEST(Model, RoundTrips) {
  const os::TemporaryDirectory folder;
  const Model model = small_model();
  ASSERT_TRUE(save_model(model, folder.path()));
  const auto read = load_model(folder.path());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->shape, model.shape);
  EXPECT_EQ(read->parameters, model.parameters);
  EXPECT_EQ(read->input_scale, 16);
  EXPECT_EQ(read->image_width, 2u);
}

TEST(Model, StoresWeightsAsASafetensorsFile) {
  const std::string bytes = encode_weights(small_model());
  uint64_t length;
  std::memcpy(&length, bytes.data(), sizeof length);
  EXPECT_EQ(length % 8, 0u);
  const auto header = parse_json(std::string_view(bytes).substr(8, length));
  ASSERT_TRUE(header);
  EXPECT_EQ(header->dump(),
            R"({"class.bias":{"data_offsets":[84,92],"dtype":"F32","shape":[2]},)"
            R"("class.weight":{"data_offsets":[60,84],"dtype":"F32","shape":[3,2]},)"
            R"("hidden.bias":{"data_offsets":[48,60],"dtype":"F32","shape":[3]},)"
            R"("hidden.weight":{"data_offsets":[0,48],"dtype":"F32","shape":[4,3]}})");
  EXPECT_EQ(bytes.size(), 8 + length + 92);
}

TEST(Model, RejectsDamagedFiles) {
  const std::string description = encode_description(small_model());
  const std::string weights = encode_weights(small_model());
  EXPECT_FALSE(decode_model("", weights));
  EXPECT_FALSE(decode_model("[]", weights));
  EXPECT_FALSE(decode_model(description, ""));
  EXPECT_FALSE(decode_model(description, weights.substr(0, weights.size() - 1)));
  const auto replaced = [](std::string text, std::string_view old, std::string_view by) {
    const size_t at = text.find(old);
    EXPECT_NE(at, std::string::npos) << old;
    return text.replace(at, old.size(), by);
  };
  EXPECT_FALSE(decode_model(replaced(description, "\"inputs\": 4", "\"inputs\": 5"), weights));
  EXPECT_FALSE(
      decode_model(replaced(description, "\"inputs\": 4", "\"inputs\": 9999999999"), weights));
  EXPECT_FALSE(decode_model(replaced(description, "\"version\": 1", "\"version\": 2"), weights));
  EXPECT_FALSE(
      decode_model(replaced(description, "\"image_width\": 2", "\"image_width\": 3"), weights));
  EXPECT_FALSE(decode_model(replaced(description, "16.0", "0.00"), weights));
  EXPECT_FALSE(decode_model(description, replaced(weights, "F32", "F64")));
  EXPECT_FALSE(decode_model(description, replaced(weights, "[84,92]", "[88,96]")));
  EXPECT_FALSE(decode_model(description, replaced(weights, "hidden.bias", "hidden.BIAS")));
}

TEST(Model, ComparesRelativeToTheSizeOfTheTensor) {
  const Model model = small_model();
  EXPECT_EQ(compare(model, model)->relative, 0);
  Model other = model;
  other.parameters[0] += 0.5f;
  const auto difference = compare(model, other);
  ASSERT_TRUE(difference);
  EXPECT_NEAR(difference->absolute, 0.5, 1e-6);
  EXPECT_GT(difference->relative, 0.1);
  EXPECT_EQ(difference->tensor, "hidden.weight");
  other.shape = {4, 2, 2};
  EXPECT_FALSE(compare(model, other));
}

TEST(Image, CanBeMovedAndRotated) {
  const std::vector<float> image{1, 2, 3, 4};
  std::vector<float> out(4);
  move_image(image, 2, {}, out);
  EXPECT_EQ(out, image);
  move_image(image, 2, {.right = 1}, out);
  EXPECT_EQ(out, (std::vector<float>{0, 1, 0, 3}));
  move_image(image, 2, {.down = 0.5f}, out);
  EXPECT_EQ(out, (std::vector<float>{0.5f, 1, 2, 3}));
  move_image(image, 2, {.rotation = 90}, out);
  const std::vector<float> turned{3, 1, 4, 2};
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(out[i], turned[i], 1e-5);

  const Motion motion = random_motion(0.7f, 10, 5);
  EXPECT_LE(std::abs(motion.right), 0.7f);
  EXPECT_LE(std::abs(motion.rotation), 10.0f);
  EXPECT_EQ(motion.rotation, random_motion(0.7f, 10, 5).rotation);
}

TEST(Evaluate, CountsAndDraws) {
  Model model;
  model.shape = {2, 2, 2};
  model.input_scale = 16;
  model.image_width = 1;
  // The hidden units copy the inputs, and the scores the hidden units: the class is the brighter
  // pixel.
  model.parameters = {1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0};
  const auto table = parse_csv("16,0,0\n0,16,1\n0,8,0\n");
  const auto evaluation = evaluate(model, *table);
  ASSERT_TRUE(evaluation);
  EXPECT_EQ(evaluation->predicted, (std::vector<int32_t>{0, 1, 1}));
  EXPECT_EQ(evaluation->correct, 2u);
  EXPECT_EQ(first_mistakes(*table, *evaluation, 9), std::vector<size_t>{2});
  const std::string drawn = draw_predictions(model, *table, *evaluation, first_rows(*table, 9));
  EXPECT_NE(drawn.find("██"), std::string::npos);
  EXPECT_NE(drawn.find("says 1, is 0"), std::string::npos);
  EXPECT_FALSE(evaluate(model, *parse_csv("1,2,3,4\n")));
}

TEST(Model, RejectsNumbersBeyondTheirLimits) {
  const Model model = small_model();
  const std::string weights = encode_weights(model);
  const auto described = [&](const char* name, const std::string& number) {
    auto description = *parse_json(encode_description(model));
    description[name] = *parse_json(number);
    return decode_model(description.dump(), weights);
  };
  const std::vector<std::string> extremes = {"0",           "-1",
                                             "2147483648",  "4294967296",
                                             "-2147483649", "9223372036854775807",
                                             "1e300",       "18446744073709551615"};
  for (const char* name : {"inputs", "hidden", "classes", "version", "input_scale"})
    for (const std::string& number : extremes) {
      const auto read = described(name, number);
      ASSERT_FALSE(read) << name << " " << number;
      EXPECT_NE(read.error().message.find("model.json: "), std::string::npos)
          << read.error().message;
    }
  EXPECT_TRUE(described("image_width", "0"));
  for (size_t i = 1; i < extremes.size(); ++i)
    EXPECT_FALSE(described("image_width", extremes[i])) << extremes[i];
  EXPECT_TRUE(described("input_scale", "1e9"));
  for (const char* scale : {"1.1e9", "1e-7", "3.5e38", "1e-300"})
    EXPECT_FALSE(described("input_scale", scale)) << scale;
}

TEST(Model, RejectsTensorsOutsideTheFile) {
  const Model model = small_model();
  const std::string bytes = encode_weights(model);
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  const auto header = *parse_json(std::string_view(bytes).substr(8, length));
  const std::string numbers = bytes.substr(8 + length);
  const auto placed = [&](const std::string& offsets) {
    auto changed = header;
    changed["class.bias"]["data_offsets"] = *parse_json(offsets);
    const std::string text = changed.dump();
    const uint64_t size = text.size();
    return decode_model(
        encode_description(model),
        std::string(reinterpret_cast<const char*>(&size), sizeof size) + text + numbers);
  };
  EXPECT_TRUE(placed("[84,92]"));
  // The last two have the correct length, or would have it if sums overflowed.
  for (const char* offsets :
       {"[0,0]", "[-8,0]", "[0,2147483648]", "[0,4294967296]", "[0,9223372036854775807]", "[92,84]",
        "[18446744073709551608,18446744073709551615]", "[9223372036854775799,9223372036854775807]",
        "[18446744073709551612,4]"})
    EXPECT_FALSE(placed(offsets)) << offsets;
  for (const uint64_t size : {uint64_t(0), uint64_t(1) << 31, uint64_t(1) << 32,
                              uint64_t(INT64_MAX), UINT64_MAX, UINT64_MAX - 7}) {
    std::string damaged = bytes;
    std::memcpy(damaged.data(), &size, sizeof size);
    EXPECT_FALSE(decode_model(encode_description(model), damaged)) << size;
  }
}

}  // namespace
}  // namespace trainyard::train
