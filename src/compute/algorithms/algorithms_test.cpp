// Tests image classification with small networks: hyperparameters, the order of images, training on
// several hosts, stored models, and rejected input.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <thread>

#include "algorithms/image_classification/job.hpp"
#include "algorithms/image_classification/model_file.hpp"
#include "algorithms/image_classification/trainer.hpp"
#include "base/json.hpp"
#include "base/random.hpp"
#include "images/testing/encode.hpp"
#include "os/files.hpp"
#include "os/machine_clock.hpp"
#include "os/temporary_directory.hpp"

namespace trainyard::algorithms {
namespace {

using images::testing::framed;
using images::testing::record_of;
using images::testing::to_png;
using Hyperparameters = std::map<std::string, std::string>;

// -- hyperparameters

const Hyperparameters kFew = {{"num_classes", "4"},     {"num_training_samples", "48"},
                              {"num_layers", "20"},     {"image_shape", "1,8,8"},
                              {"mini_batch_size", "8"}, {"epochs", "2"}};

Hyperparameters with(Hyperparameters all, const std::string& name, const std::string& value) {
  all[name] = value;
  return all;
}

std::string fault_of(const Hyperparameters& all) {
  const auto parsed = parse_classifier_settings(all);
  return parsed ? "parsed" : parsed.error().message;
}

TEST(ClassifierSettings, HaveSageMakersDefaults) {
  const auto parsed =
      parse_classifier_settings({{"num_classes", "10"}, {"num_training_samples", "100"}});
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->num_layers, 152);
  EXPECT_EQ(to_string(parsed->image_shape), "3,224,224");
  EXPECT_EQ(parsed->mini_batch_size, 32);
  EXPECT_EQ(parsed->epochs, 30);
  EXPECT_EQ(parsed->learning_rate, 0.1);
  EXPECT_EQ(parsed->optimizer.method, parallel::Method::sgd);
  EXPECT_EQ(parsed->optimizer.weight_decay, 1e-4);
  EXPECT_FALSE(parsed->early_stopping);
}

TEST(ClassifierSettings, ParsesValuesAsTheSdkSendsThem) {
  Hyperparameters all = kFew;
  all["optimizer"] = "\"adam\"";
  all["lr_scheduler_step"] = "\"2,5\"";
  all["early_stopping"] = "True";
  all["sagemaker_region"] = "\"eu-west-1\"";
  const auto parsed = parse_classifier_settings(all);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(parsed->optimizer.method, parallel::Method::adam);
  EXPECT_EQ(parsed->lr_scheduler_step, (std::vector<int64_t>{2, 5}));
  EXPECT_TRUE(parsed->early_stopping);
}

TEST(ClassifierSettings, RejectsInvalidValuesWithTheReason) {
  EXPECT_EQ(fault_of(with(kFew, "epoch", "3")),
            "Additional properties are not allowed ('epoch' was unexpected)");
  Hyperparameters missing = kFew;
  missing.erase("num_classes");
  EXPECT_EQ(fault_of(missing), "'num_classes' is a required property");
  const std::tuple<const char*, const char*, const char*> wrong[] = {
      {"epochs", "ten", "'ten' is not of type 'integer'"},
      {"epochs", "0", "0 is less than the minimum of 1"},
      {"learning_rate", "1.5", "1.5 is greater than the maximum of 1"},
      {"learning_rate", "nan", "'nan' is not of type 'number'"},
      {"momentum", "-0.1", "-0.1 is less than the minimum of 0"},
      {"num_layers", "21", "21 is not one of [18, 34, 50, 101, 152, 200, 20, 32, 44, 56, 110]"},
      {"optimizer", "lamb", "'lamb' is not one of ['sgd', 'adam', 'rmsprop', 'nag']"},
      {"image_shape", "8,8", "'8,8' is not 'num_channels,height,width'"},
      {"image_shape", "2,8,8", "'2,8,8': images have 1 or 3 channels"},
      {"lr_scheduler_step", "5,5", "'5,5' must be epochs in ascending order"},
      {"use_pretrained_model", "1", "'1' is not supported: this server has no pretrained weights"},
      {"multi_label", "1", "'1' is not supported: an image has one class"},
      {"multi_label", "2", "'2' is not one of ['0', '1']"},
  };
  for (const auto& [name, value, text] : wrong)
    EXPECT_EQ(
        fault_of(with(kFew, name, value)).find("hyperparameter " + std::string(name) + ": " + text),
        0u)
        << fault_of(with(kFew, name, value));
  EXPECT_NE(fault_of(with(kFew, "image_shape", "3,64,64")).find("at most 32 pixels"),
            std::string::npos);
  EXPECT_NE(fault_of(with(kFew, "num_layers", "18")).find("at least 32 pixels"), std::string::npos);
  EXPECT_NE(fault_of(with(kFew, "resize", "7")).find("less than the 8 pixels"), std::string::npos);
  EXPECT_NE(fault_of(with(kFew, "top_k", "4")).find("must be less than num_classes"),
            std::string::npos);
}

TEST(EarlyStopping, EndsWhenTheAccuracyStopsGrowing) {
  EarlyStopping stopping({true, 4, 2, 0.01});
  EXPECT_FALSE(stopping.ends_after(0.5));
  EXPECT_FALSE(stopping.ends_after(0.6));
  EXPECT_FALSE(stopping.ends_after(0.603));  // within the tolerance
  EXPECT_TRUE(stopping.ends_after(0.59));
  EarlyStopping off({false, 1, 1, 0});
  for (int epoch = 0; epoch < 9; ++epoch) EXPECT_FALSE(off.ends_after(0.5));
}

// -- the order of images

TEST(EpochOrder, PartsHaveTheSameImagesOnAnyNumberOfRanks) {
  const int64_t batch = 3, parts = 4;
  for (int64_t epoch = 0; epoch < 2; ++epoch)
    for (int64_t step = 0; step < 3; ++step)
      for (int64_t part = 0; part < parts; ++part) {
        const Shares alone{true, 17, 17, 0, 1};
        const auto expected = EpochOrder(alone, 5, epoch).batch(step, part, parts, batch);
        const Shares shared{true, 17, 17, int(part / 2), 2};
        EXPECT_EQ(EpochOrder(shared, 5, epoch).batch(step, part % 2, 2, batch), expected);
      }
}

TEST(EpochOrder, AnEpochReadsEveryImage) {
  for (const bool replicated : {true, false}) {
    const uint64_t own = 10;
    std::vector<int> read(own);
    for (int rank = 0; rank < 2; ++rank) {
      const Shares shares{replicated, own, replicated ? own : 2 * own, rank, 2};
      const EpochOrder order(shares, 1, 0);
      for (int64_t step = 0; step < steps_of_epoch(shares, 2, 1); ++step)
        for (const uint32_t image : order.batch(step, 0, 1, 2)) ++read[image];
    }
    for (const int times : read) EXPECT_GE(times, replicated ? 1 : 2);
  }
  const Shares one{true, 5, 5, 0, 1};
  EXPECT_NE(EpochOrder(one, 1, 0).batch(0, 0, 1, 5), EpochOrder(one, 1, 1).batch(0, 0, 1, 5));
}

TEST(Shares, AreReplicatedIfAllHostsHaveTheSameImages) {
  const std::vector<std::string> hosts = {"algo-1", "algo-2"};
  const auto same = decode_shares({encode({5, 7}), encode({5, 7})}, 1, hosts);
  ASSERT_TRUE(same);
  EXPECT_TRUE(same->replicated);
  EXPECT_EQ(same->all, 5u);
  EXPECT_EQ(scored_images(*same), (std::vector<uint32_t>{1, 3}));
  const auto sharded = decode_shares({encode({5, 7}), encode({4, 8})}, 1, hosts);
  ASSERT_TRUE(sharded);
  EXPECT_FALSE(sharded->replicated);
  EXPECT_EQ(sharded->all, 9u);
  EXPECT_EQ(scored_images(*sharded).size(), 4u);
  const auto none = decode_shares({encode({5, 7}), encode({0, 0})}, 0, hosts);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "no images on host algo-2");
}

// -- networks

TEST(ResNet, HasTheParametersOfItsArchitecture) {
  const auto count = [](int64_t layers, const ImageShape& shape, int64_t classes) {
    int64_t numbers = 0;
    const ResNet network(layers, shape, classes, 1);
    for (const auto& each : network.parameters()) numbers += each.tensor.numel();
    return numbers;
  };
  // The same numbers as torchvision's resnet18 and resnet50.
  EXPECT_EQ(count(18, {3, 224, 224}, 1000), 11'689'512);
  EXPECT_EQ(count(50, {3, 224, 224}, 1000), 25'557'032);
  EXPECT_EQ(count(20, {3, 32, 32}, 10), 272'474);
}

// Compares batch normalisation and its statistics with their definition.
TEST(ResNet, CollectsMeansAndVariances) {
  at::set_num_threads(1);
  ResNet network(20, {1, 8, 8}, 4, 1);
  const at::Tensor images = at::randn({6, 1, 8, 8});
  network.forward(images, true);
  const at::Tensor first = at::conv2d(images, network.parameters()[0].tensor, {}, 1, 1).detach();
  const at::Tensor means = first.mean({0, 2, 3});
  const at::Tensor variances = first.transpose(0, 1).reshape({16, -1}).var(1);
  for (int64_t channel = 0; channel < 16; ++channel) {
    EXPECT_NEAR(network.collected()[size_t(channel)], means[channel].item().toDouble(), 1e-5);
    EXPECT_NEAR(network.collected()[size_t(16 + channel)], variances[channel].item().toDouble(),
                1e-4);
  }
  network.apply_statistics(1);
  for (const auto& each : network.stored())
    if (each.name == "bn1.running_mean") {
      EXPECT_TRUE(at::allclose(each.tensor, 0.1 * means, 1e-4, 1e-6));
    }
  EXPECT_EQ(network.collected()[0], 0);
}

// -- training

// Returns noise with a bright square in one of the four corners; the corner is the class.
images::Image corner(int label, uint64_t seed) {
  SeededRandom random(seed);
  images::Image image{8, 8, 1, std::vector<uint8_t>(64)};
  for (uint8_t& each : image.pixels) each = uint8_t(random.below(60));
  for (int y = 0; y < 4; ++y)
    for (int x = 0; x < 4; ++x)
      image.pixels[size_t((y + (label & 2) * 2) * 8 + x + (label & 1) * 4)] =
          uint8_t(160 + random.below(90));
  return image;
}

std::string record(float label, const std::string& image) {
  return framed(0, record_of(label, image));
}

std::string records(int count, uint64_t seed) {
  std::string bytes;
  for (int i = 0; i < count; ++i)
    bytes += record(float(i % 4), to_png(corner(i % 4, seed + uint64_t(i))));
  return bytes;
}

Json channel(const std::string& content_type) {
  Json entry = {{"TrainingInputMode", "File"},
                {"S3DistributionType", "FullyReplicated"},
                {"RecordWrapperType", "None"}};
  if (!content_type.empty()) entry["ContentType"] = content_type;
  return entry;
}

// Host makes the folders of one host of a job, and runs the job there.
struct Host {
  os::TemporaryDirectory folder;

  Host(const Hyperparameters& hyperparameters, const std::string& train, int number = 1,
       int hosts = 1) {
    for (const char* each :
         {"input/config", "input/data/train", "input/data/validation", "model", "output"})
      std::filesystem::create_directories(folder.path() + "/" + each);
    Json names = Json::array();
    // Each host listens on a loopback address of its own.
    for (int i = 1; i <= hosts; ++i) names.push_back("127.0.17." + std::to_string(i));
    write("config/resourceconfig.json", dump({{"current_host", names[size_t(number - 1)]},
                                              {"hosts", names},
                                              {"network_interface_name", "lo"}}));
    write("config/hyperparameters.json", dump(Json(hyperparameters)));
    const Json records_channel = channel("application/x-recordio");
    write("config/inputdataconfig.json",
          dump({{"train", records_channel}, {"validation", records_channel}}));
    write("data/train/train.rec", train);
    write("data/validation/validation.rec", records(16, 9000));
  }
  void write(const std::string& name, const std::string& bytes) const {
    EXPECT_TRUE(os::write_file(folder.path() + "/input/" + name, bytes));
  }
  std::string model() const { return folder.path() + "/model/" + std::string(kClassifierFile); }
  std::string failure() const {
    const auto text = os::read_file(folder.path() + "/output/failure");
    return text ? *text : "";
  }
  Result<void> run(std::vector<std::string>& lines) const {
    os::MachineClock clock;
    const std::atomic<bool> stop = false;
    return run_classifier_job({folder.path(), "arn:of:the:job"}, clock, stop,
                              [&](std::string_view line) { lines.emplace_back(line); });
  }
  std::string fault() const {
    std::vector<std::string> lines;
    const auto done = run(lines);
    if (done) return "trained";
    EXPECT_EQ(failure(), done.error().message);
    return done.error().message;
  }
};

bool has(const std::vector<std::string>& lines, const std::string& start) {
  return std::ranges::any_of(lines, [&](const auto& each) { return each.starts_with(start); });
}

TEST(ClassifierJob, LearnsAndStoresTheBestModel) {
  const Host host(with(with(kFew, "epochs", "6"), "learning_rate", "0.05"), records(48, 1));
  std::vector<std::string> lines;
  const auto done = host.run(lines);
  ASSERT_TRUE(done) << done.error().message;
  for (const char* start :
       {"num_layers: 20", "Epoch[0] Train-accuracy=", "Epoch[5] Validation-accuracy=1.000000",
        "Storing the best model with validation accuracy: 1.000000", "Saved checkpoint to "})
    EXPECT_TRUE(has(lines, start)) << start;
  const auto classifier = load_classifier(host.model());
  ASSERT_TRUE(classifier) << classifier.error().message;
  int correct = 0;
  for (int label = 0; label < 4; ++label) {
    const auto scores = score_image(*classifier, to_png(corner(label, 5000 + uint64_t(label))));
    ASSERT_TRUE(scores);
    correct += std::ranges::max_element(*scores) - scores->begin() == label ? 1 : 0;
  }
  EXPECT_EQ(correct, 4);
}

// Trains `ranks` ranks in one process, each with `parts` parts. Returns all stored tensors of rank
// 0.
std::vector<at::Tensor> train_ranks(int ranks, int64_t parts) {
  const os::TemporaryDirectory folder;
  EXPECT_TRUE(os::write_file(folder.path() + "/a.rec", records(40, 3)));
  auto groups = collectives::join_in_memory(ranks);
  std::vector<std::vector<at::Tensor>> trained(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      at::set_num_threads(1);
      os::MachineClock clock;
      TrainerOptions options;
      options.settings = *parse_classifier_settings(kFew);
      options.parts = parts;
      options.print = [](std::string_view) {};
      options.save = [](const ResNet&, int64_t) { return ok(); };
      Channel channel{*images::Collection::open_records(folder.path()),
                      {true, 40, 40, rank, ranks}};
      auto trainer = ClassifierTrainer::make(
          std::move(options), std::move(channel), std::nullopt,
          std::make_unique<ResNet>(20, ImageShape{1, 8, 8}, 4, 1), *groups[size_t(rank)], clock);
      ASSERT_TRUE(trainer) << trainer.error().message;
      const std::atomic<bool> stop = false;
      const auto done = (*trainer)->run(stop);
      ASSERT_TRUE(done) << done.error().message;
      for (const auto& each : (*trainer)->network().stored())
        trained[size_t(rank)].push_back(each.tensor.detach().clone());
    });
  for (std::thread& each : threads) each.join();
  for (const auto& other : trained)
    for (size_t i = 0; i < other.size(); ++i) {
      EXPECT_TRUE(at::equal(other[i], trained[0][i])) << "ranks differ in tensor " << i;
    }
  return trained[0];
}

TEST(ClassifierTrainer, TwoRanksTrainTheModelOfOneBitForBit) {
  const auto two = train_ranks(2, 1), one = train_ranks(1, 2);
  ASSERT_EQ(two.size(), one.size());
  for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(at::equal(two[i], one[i])) << i;
}

TEST(ClassifierJob, TwoHostsTrainTogether) {
  const std::string train = records(48, 1);
  const Host first(kFew, train, 1, 2), second(kFew, train, 2, 2);
  std::vector<std::string> lines[2];
  std::thread other([&] {
    const auto done = second.run(lines[1]);
    EXPECT_TRUE(done) << done.error().message;
  });
  const auto done = first.run(lines[0]);
  other.join();
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_TRUE(has(lines[0], "Epoch[1] Validation-accuracy="));
  EXPECT_FALSE(has(lines[1], "Epoch["));
  EXPECT_TRUE(os::exists(first.model()));
  EXPECT_FALSE(os::exists(second.model()));
}

TEST(ClassifierJob, ContinuesFromTheModelChannel) {
  const Host first(kFew, records(16, 1));
  std::vector<std::string> lines;
  ASSERT_TRUE(first.run(lines));
  const auto with_model = [&](const Hyperparameters& hyperparameters) {
    auto host = std::make_unique<Host>(hyperparameters, records(16, 1));
    std::filesystem::create_directories(host->folder.path() + "/input/data/model");
    std::filesystem::copy(first.model(), host->folder.path() + "/input/data/model");
    host->write("config/inputdataconfig.json",
                dump({{"train", channel("")}, {"model", channel("")}}));
    return host;
  };
  EXPECT_EQ(with_model(kFew)->fault(), "trained");
  EXPECT_NE(with_model(with(kFew, "num_classes", "5"))
                ->fault()
                .find("20 layers, images of 1,8,8, 4 classes, but the hyperparameters request 20 "
                      "layers, images of 1,8,8, 5 classes"),
            std::string::npos);
}

// -- rejected input: the error and the failure file

TEST(ClassifierJob, NamesATruncatedImage) {
  const std::string png = to_png(corner(0, 1));
  const Host host(kFew, records(4, 1) + record(1, png.substr(0, png.size() / 2)));
  const std::string fault = host.fault();
  EXPECT_NE(fault.find("image train.rec, record 4: invalid or truncated PNG"), std::string::npos)
      << fault;
}

TEST(ClassifierJob, NamesALabelOutOfRange) {
  for (const float label : {4.0f, -1.0f, 1.5f, std::numeric_limits<float>::quiet_NaN()}) {
    const Host host(kFew, records(4, 1) + record(label, to_png(corner(0, 1))));
    const std::string fault = host.fault();
    EXPECT_NE(fault.find("of image train.rec, record 4 is out of range: num_classes is 4, so "
                         "labels are integers from 0 to 3"),
              std::string::npos)
        << fault;
  }
}

TEST(ClassifierJob, NamesStepRateAndBatchWhenTheLossIsNotFinite) {
  const Host host(with(kFew, "learning_rate", "0.25"), records(48, 1));
  // The model's last step diverged.
  const ResNet network(20, {1, 8, 8}, 4, 1);
  network.stored()[network.parameters().size() - 1].tensor.detach().fill_(
      std::numeric_limits<float>::quiet_NaN());
  std::filesystem::create_directories(host.folder.path() + "/input/data/model");
  ASSERT_TRUE(
      save_classifier({20, {1, 8, 8}, 4}, network,
                      host.folder.path() + "/input/data/model/" + std::string(kClassifierFile)));
  host.write("config/inputdataconfig.json", dump({{"train", channel("")}, {"model", channel("")}}));
  const std::string fault = host.fault();
  EXPECT_EQ(fault.find("the loss is NaN in epoch 0, step 0 (learning_rate 0.25, last batch "
                       "train.rec, record "),
            0u)
      << fault;
  EXPECT_FALSE(os::exists(host.model()));
}

TEST(ClassifierJob, NamesAHostWithoutImagesOnEveryHost) {
  const Host first(kFew, records(8, 1), 1, 2), second(kFew, "", 2, 2);
  std::string faults[2];
  std::thread other([&] { faults[1] = second.fault(); });
  faults[0] = first.fault();
  other.join();
  for (const std::string& fault : faults)
    EXPECT_EQ(fault, "channel train: no images on host 127.0.17.2");
}

TEST(ClassifierJob, EndsOnAllHostsWithTheErrorOfOne) {
  const Host first(kFew, records(8, 1), 1, 2),
      second(kFew, records(8, 1) + record(9, to_png(corner(0, 1))), 2, 2);
  std::string faults[2];
  std::thread other([&] { faults[1] = second.fault(); });
  faults[0] = first.fault();
  other.join();
  for (const std::string& fault : faults)
    EXPECT_NE(fault.find("label 9 of image train.rec, record 8 is out of range"), std::string::npos)
        << fault;
}

TEST(ClassifierJob, RejectsSmallImagesAndInvalidChannels) {
  EXPECT_NE(Host(with(kFew, "image_shape", "1,9,8"), records(4, 1))
                .fault()
                .find("the image has 8 x 8 pixels, fewer than image_shape 1,9,8"),
            std::string::npos);
  const Host host(kFew, records(4, 1));
  host.write("config/inputdataconfig.json", dump({{"train", channel("text/csv")}}));
  EXPECT_NE(host.fault().find("'text/csv' is not one of"), std::string::npos);
  host.write("config/inputdataconfig.json", dump({{"train", channel("application/x-image")}}));
  EXPECT_NE(host.fault().find("the channel train_lst with their list is missing"),
            std::string::npos);
  host.write("config/inputdataconfig.json", dump(Json::object()));
  EXPECT_EQ(host.fault(), "'train' is a required property");
}

}  // namespace
}  // namespace trainyard::algorithms
