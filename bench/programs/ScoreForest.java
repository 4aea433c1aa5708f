// Measures AWS's library of random cut forests: the peer of score_forest.cpp, with the same
// arguments and output. One thread, as ours.
import com.amazon.randomcutforest.RandomCutForest;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;

public class ScoreForest {
  static float[][] read(String path, int dimensions) throws Exception {
    ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(Path.of(path)));
    bytes.order(ByteOrder.LITTLE_ENDIAN);
    float[][] rows = new float[bytes.remaining() / 4 / dimensions][dimensions];
    for (float[] row : rows)
      for (int i = 0; i < dimensions; ++i) row[i] = bytes.getFloat();
    return rows;
  }

  static RandomCutForest make(int dimensions, int trees, int samples, long seed) {
    return RandomCutForest.builder()
        .dimensions(dimensions)
        .numberOfTrees(trees)
        .sampleSize(samples)
        .timeDecay(0)
        .randomSeed(seed)
        .parallelExecutionEnabled(false)
        .build();
  }

  // Of this thread alone: what Java's compiler and collector do on others does not count.
  static long now() {
    return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
  }

  static double seconds(long since) {
    return (now() - since) / 1e9;
  }

  public static void main(String[] arguments) throws Exception {
    int dimensions = Integer.parseInt(arguments[1]);
    int trees = Integer.parseInt(arguments[2]);
    int samples = Integer.parseInt(arguments[3]);
    long seed = Long.parseLong(arguments[4]);
    int warming = Integer.parseInt(arguments[5]);
    float[][] rows = read(arguments[0], dimensions);
    double[] scores = new double[rows.length];
    double train = 0, score = 0, stream = 0;
    for (int round = 0; round <= warming; ++round) { // the last one counts
      RandomCutForest forest = make(dimensions, trees, samples, seed);
      long began = now();
      for (float[] row : rows) forest.update(row);
      train = seconds(began);
      began = now();
      for (int i = 0; i < rows.length; ++i) scores[i] = forest.getAnomalyScore(rows[i]);
      score = seconds(began);
      forest = make(dimensions, trees, samples, seed);
      began = now();
      double sum = 0;
      for (float[] row : rows) {
        sum += forest.getAnomalyScore(row);
        forest.update(row);
      }
      stream = seconds(began);
      if (Double.isNaN(sum)) throw new IllegalStateException("a score is not a number");
    }
    ByteBuffer out = ByteBuffer.allocate(8 * scores.length).order(ByteOrder.LITTLE_ENDIAN);
    for (double each : scores) out.putDouble(each);
    Files.write(Path.of(arguments[6]), out.array());
    System.out.printf(
        "{\"train\": %f, \"score\": %f, \"stream\": %f}%n",
        rows.length / train, rows.length / score, rows.length / stream);
  }
}
