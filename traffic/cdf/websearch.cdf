# Flow sizes of a web search cluster: size in bytes, percent of the flows that are no larger.
# Alizadeh et al., Data Center TCP (DCTCP), SIGCOMM 2010, figure 4, in the points that the pFabric
# simulations read off it (SIGCOMM 2013; packets of 1460 bytes).
8760 0
8760 15
18980 20
27740 30
48180 40
77380 53
194180 60
973820 70
1946180 80
4866180 90
9733820 97
29200000 100
