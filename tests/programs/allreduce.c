/* An all-reduce benchmark in the manner of OSU's: argv[1] doubles, three times after one to warm up. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	int rank, ranks, count = argc > 1 ? atoi(argv[1]) : 1000;
	const char *name = getenv("FABRIC_MARKS");
	FILE *marks = fopen(name ? name : "/dev/null", "w");

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	double *mine = malloc(count * sizeof(double)), *sum = malloc(count * sizeof(double));

	for (int i = 0; i < count; i++)
		mine[i] = rank + i;
	for (int round = 0; round < 4; round++) {
		MPI_Allreduce(mine, sum, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		fprintf(marks, "round\n");
		fflush(marks);
	}
	int right = 1;

	for (int i = 0; i < count; i++)
		right &= sum[i] == ranks * (ranks - 1) / 2.0 + (double)ranks * i;
	printf("rank %d of %d: %s\n", rank, ranks, right ? "right" : "wrong");
	MPI_Finalize();
	return !right;
}
