# Flow sizes of a data mining cluster: size in bytes, percent of the flows that are no larger.
# Greenberg et al., VL2, SIGCOMM 2009, figure 2, in the points that the pFabric simulations read off
# it (Alizadeh et al., SIGCOMM 2013; packets of 1460 bytes).
1460 0
1460 50
2920 60
4380 70
10220 80
389820 90
3076220 95
97333820 99
973333820 100
