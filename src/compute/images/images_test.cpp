// Tests decoding, resizing and augmenting images, and collections of labelled images.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <span>

#include "base/bytes/little_endian.hpp"
#include "base/random.hpp"
#include "images/augment.hpp"
#include "images/collection.hpp"
#include "images/decode.hpp"
#include "images/image_record.hpp"
#include "images/resample.hpp"
#include "images/testing/encode.hpp"
#include "os/files.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::images {
namespace {

using namespace testing;

// Returns a smooth image, which JPEG hardly changes.
Image gradient(int width, int height, int channels) {
  Image image{width, height, channels, {}};
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < channels; ++c)
        image.pixels.push_back(uint8_t(c == 0 ? 255 * x / width : c == 1 ? 255 * y / height : 128));
  return image;
}

int largest_difference(const Image& a, const Image& b) {
  EXPECT_EQ(a.pixels.size(), b.pixels.size());
  int largest = 0;
  for (size_t i = 0; i < std::min(a.pixels.size(), b.pixels.size()); ++i)
    largest = std::max(largest, std::abs(int(a.pixels[i]) - int(b.pixels[i])));
  return largest;
}

std::string fault_of(const Result<Image>& result) {
  return result ? "decoded" : result.error().message;
}

TEST(DecodeImage, PngIsExactAndJpegIsClose) {
  for (const int channels : {1, 3}) {
    const Image image = gradient(40, 24, channels);
    const auto png = decode_image(to_png(image), channels);
    ASSERT_TRUE(png) << png.error().message;
    EXPECT_EQ(png->pixels, image.pixels);
    for (const bool progressive : {false, true}) {
      const auto jpeg = decode_image(to_jpeg(image, progressive), channels);
      ASSERT_TRUE(jpeg) << jpeg.error().message;
      EXPECT_LE(largest_difference(*jpeg, image), 8);
    }
  }
}

TEST(DecodeImage, ConvertsColours) {
  const auto grey = decode_image(to_png(gradient(4, 4, 3)), 1);
  ASSERT_TRUE(grey);
  EXPECT_EQ(grey->pixels.size(), 16u);
  const auto coloured = decode_image(to_png(gradient(4, 4, 1)), 3);
  ASSERT_TRUE(coloured);
  EXPECT_EQ(coloured->at(2, 0)[0], coloured->at(2, 0)[2]);
}

TEST(DecodeImage, RejectsAnImageThatIsTruncatedAnywhere) {
  for (const std::string& bytes : {to_png(gradient(40, 24, 3)), to_jpeg(gradient(40, 24, 3)),
                                   to_jpeg(gradient(40, 24, 3), true)}) {
    for (size_t size = 0; size < bytes.size() - 12; size += 7)
      EXPECT_FALSE(decode_image(std::string_view(bytes).substr(0, size), 3)) << size;
  }
  EXPECT_NE(fault_of(decode_image("GIF89a", 3)).find("neither a JPEG nor a PNG"),
            std::string::npos);
}

TEST(DecodeImage, ComparesTheHeaderWithTheLimits) {
  std::string png = to_png(gradient(8, 8, 1));
  std::memcpy(png.data() + 16, "\x00\x01\x00\x00\x00\x01\x00\x00", 8);  // 65536 x 65536
  EXPECT_FALSE(decode_image(png, 1));  // the checksum of the header differs as well
  std::string jpeg = to_jpeg(gradient(8, 8, 1));
  const size_t size = jpeg.find("\xff\xc0");
  ASSERT_NE(size, std::string::npos);
  std::memcpy(jpeg.data() + size + 5, "\xff\xdc\xff\xdc", 4);  // 65500 x 65500
  EXPECT_NE(fault_of(decode_image(jpeg, 1)).find("more than"), std::string::npos);
}

TEST(DecodeImage, DecodesAJpegAtAFractionOfItsSize) {
  const Image image = gradient(256, 128, 3);
  const auto scaled = decode_image(to_jpeg(image), 3, 30);
  ASSERT_TRUE(scaled);
  EXPECT_EQ(scaled->width, 64);
  EXPECT_EQ(scaled->height, 32);
  EXPECT_LE(largest_difference(*scaled, resize(image, 64, 32)), 8);
}

TEST(Resample, KeepsConstantsAndMeans) {
  const Image flat{5, 3, 3, std::vector<uint8_t>(45, 77)};
  for (const auto& [width, height] : {std::pair{2, 9}, {1, 1}, {5, 3}, {40, 2}})
    for (const uint8_t each : resize(flat, width, height).pixels) EXPECT_EQ(each, 77);
  const Image two{2, 1, 1, {0, 200}};
  EXPECT_EQ(resize(two, 1, 1).pixels[0], 100);
}

TEST(Resample, SetsTheShortestSideAndKeepsTheRatio) {
  const Image resized = resize_shortest_side(gradient(300, 100, 1), 50);
  EXPECT_EQ(resized.width, 150);
  EXPECT_EQ(resized.height, 50);
}

TEST(Resample, CropsAndFlips) {
  Image image{3, 2, 1, {1, 2, 3, 4, 5, 6}};
  EXPECT_EQ(crop(image, 1, 0, 2, 2).pixels, (std::vector<uint8_t>{2, 3, 5, 6}));
  flip(image);
  EXPECT_EQ(image.pixels, (std::vector<uint8_t>{3, 2, 1, 6, 5, 4}));
}

// -- augmentation

TEST(Augment, ChangesNothingWithoutShiftAndDistortion) {
  SeededRandom random(1);
  Image image{16, 16, 3, std::vector<uint8_t>(16 * 16 * 3)};
  random.fill(std::as_writable_bytes(std::span(image.pixels)));
  Image shifted = image;
  shift_colours(shifted, {});
  EXPECT_LE(largest_difference(shifted, image), 1);
  EXPECT_EQ(distort(image, {}).pixels, image.pixels);
}

TEST(Augment, ShiftsColoursInTheDocumentedUnits) {
  Image red{1, 1, 3, {255, 0, 0}};
  shift_colours(red, {.hue = 60});
  EXPECT_EQ(red.pixels, (std::vector<uint8_t>{0, 255, 0}));
  shift_colours(red, {.hue = -90});
  EXPECT_EQ(red.pixels, (std::vector<uint8_t>{255, 0, 255}));
  shift_colours(red, {.saturation = -255});
  EXPECT_EQ(red.pixels, (std::vector<uint8_t>{128, 128, 128}));
  shift_colours(red, {.lightness = 50});
  EXPECT_EQ(red.pixels, (std::vector<uint8_t>{178, 178, 178}));
  Image grey{2, 1, 1, {10, 250}};
  shift_colours(grey, {.hue = 9, .lightness = 20});
  EXPECT_EQ(grey.pixels, (std::vector<uint8_t>{30, 255}));
}

TEST(Augment, DistortsAboutTheCentre) {
  Image image = gradient(9, 9, 1);
  const uint8_t middle = image.at(4, 4)[0];
  for (int seed = 0; seed < 20; ++seed)
    EXPECT_NEAR(distort(image, random_distortion(uint64_t(seed))).at(4, 4)[0], middle, 1);
  // A quarter turn and back; the corners of a square stay inside.
  const Image turned = distort(image, {.degrees = 90});
  EXPECT_NE(turned.pixels, image.pixels);
  EXPECT_LE(largest_difference(distort(turned, {.degrees = -90}), image), 1);
}

TEST(Augment, RandomChangesStayInTheirRanges) {
  double hues = 0;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    const ColourShift shift = random_colour_shift(seed);
    EXPECT_LE(std::abs(shift.hue), 36);
    EXPECT_LE(std::abs(shift.lightness), 50);
    EXPECT_LE(std::abs(shift.saturation), 50);
    hues = std::max(hues, std::abs(shift.hue));
    const Distortion distortion = random_distortion(seed);
    EXPECT_LE(std::abs(distortion.degrees), 10);
    EXPECT_LE(std::abs(distortion.shear), 0.1);
    EXPECT_LE(std::abs(distortion.aspect - 1), 0.25);
  }
  EXPECT_GT(hues, 30);
}

// -- records and lists

TEST(RecordFile, ReadsWholeAndSplitRecords) {
  const os::TemporaryDirectory folder;
  const std::string path = folder.path() + "/a.rec";
  const std::string magic = head(0, 0).substr(0, 4);
  ASSERT_TRUE(os::write_file(path, framed(0, "first") + framed(1, "abcd") + framed(2, "efgh") +
                                       framed(3, "i") + framed(0, "")));
  const auto file = RecordFile::open(path);
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->size(), 3u);
  EXPECT_EQ(*file->read(0), "first");
  EXPECT_EQ(*file->read(1), "abcd" + magic + "efgh" + magic + "i");
  EXPECT_EQ(*file->read(2), "");
  EXPECT_EQ(*file->read_start(1, 7), "abcd" + magic.substr(0, 3));
}

TEST(RecordFile, RejectsDamagedFiles) {
  const os::TemporaryDirectory folder;
  const std::string path = folder.path() + "/a.rec";
  const std::string whole = framed(0, "first record") + framed(1, "abcd") + framed(3, "ef");
  std::vector<std::string> damaged = {"not records", framed(4, "x"), framed(3, "x"),
                                      framed(1, "x") + framed(0, "y"), framed(1, "x")};
  for (const size_t size : {3, 9, 17, 22, 33, 41, 43}) damaged.push_back(whole.substr(0, size));
  for (const std::string& bytes : damaged) {
    ASSERT_TRUE(os::write_file(path, bytes));
    EXPECT_FALSE(RecordFile::open(path)) << bytes.size();
  }
}

TEST(ImageRecord, HasOneLabelOrSeveral) {
  const std::string one_record = record_of(3, "pixels");
  const auto one = decode_image_record(one_record);
  ASSERT_TRUE(one);
  EXPECT_EQ(one->labels, std::vector<float>{3});
  EXPECT_EQ(one->image, "pixels");
  std::string several = record_of(0, std::string("\0\0\0@\0\0\x80?rest", 12));
  several[0] = 2;
  const auto two = decode_image_record(several);
  ASSERT_TRUE(two);
  EXPECT_EQ(two->labels, (std::vector<float>{2, 1}));
  EXPECT_EQ(two->image, "rest");
  several[0] = 4;
  EXPECT_FALSE(decode_image_record(several));
  EXPECT_FALSE(decode_image_record("short"));
}

TEST(ListFile, ParsesLinesAndNamesInvalidOnes) {
  const auto listed = parse_list("1\t0\tdogs/1.jpg\r\n\n2\t1\tcats/2.png");
  ASSERT_TRUE(listed) << listed.error().message;
  ASSERT_EQ(listed->size(), 2u);
  EXPECT_EQ((*listed)[1].path, "cats/2.png");
  EXPECT_EQ((*listed)[1].labels, std::vector<float>{1});
  const auto fault = [](std::string_view text) {
    const auto result = parse_list(text);
    return result ? "parsed" : result.error().message;
  };
  EXPECT_EQ(fault("1 0 dogs/1.jpg").find("line 1: a line needs number, label and path"), 0u);
  EXPECT_EQ(fault("1\t0\ta\n2\tcat\tb").find("line 2: label"), 0u);
  EXPECT_NE(fault("1\t0\t/etc/passwd").find("must be relative"), std::string::npos);
  EXPECT_NE(fault("1\t0\ta/../../b").find("leaves the channel"), std::string::npos);
}

TEST(Collection, OrdersRecordsByFileName) {
  const os::TemporaryDirectory folder;
  std::filesystem::create_directories(folder.path() + "/deep");
  ASSERT_TRUE(os::write_file(folder.path() + "/deep/b.rec", framed(0, record_of(2, "two"))));
  ASSERT_TRUE(os::write_file(folder.path() + "/a.rec",
                             framed(0, record_of(1, "one")) + framed(0, record_of(5, "five"))));
  ASSERT_TRUE(os::write_file(folder.path() + "/a.idx", "ignored"));
  const auto collection = Collection::open_records(folder.path());
  ASSERT_TRUE(collection) << collection.error().message;
  ASSERT_EQ(collection->size(), 3u);
  EXPECT_EQ(collection->labels(2), std::vector<float>{2});
  EXPECT_EQ(*collection->read(1), "five");
  EXPECT_EQ(collection->name(1), "a.rec, record 1");
}

TEST(Collection, ListedImagesMayBeOnAnotherHost) {
  const os::TemporaryDirectory folder;
  const std::string lists = folder.path() + "/lists", images = folder.path() + "/images";
  std::filesystem::create_directories(lists);
  std::filesystem::create_directories(images);
  ASSERT_TRUE(os::write_file(lists + "/train.lst", "0\t0\ta.png\n1\t1\tb.png\n"));
  ASSERT_TRUE(os::write_file(images + "/b.png", "bytes"));
  const auto strict = Collection::open_lists(lists, images, MissingFiles::are_errors);
  ASSERT_FALSE(strict);
  EXPECT_NE(strict.error().message.find("image a.png not found"), std::string::npos);
  const auto sharded = Collection::open_lists(lists, images, MissingFiles::are_elsewhere);
  ASSERT_TRUE(sharded);
  ASSERT_EQ(sharded->size(), 1u);
  EXPECT_EQ(*sharded->read(0), "bytes");
  EXPECT_EQ(sharded->labels(0), std::vector<float>{1});
}

}  // namespace
}  // namespace trainyard::images
