int answer(int n)
{
	int s = 0;

	for (int i = 0; i < n + 3; i++)
		s += ADD + i * MUL;
	return s;
}
